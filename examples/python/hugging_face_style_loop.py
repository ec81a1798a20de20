"""A language model's loop, shaped as those of Hugging Face's training scripts: gradients of several batches of padded
sentences, a schedule with a warm-up, gradients that are clipped, a fixed number of steps.

The loss of a step is the mean over all tokens of all workers, not the mean of the workers' means: each worker sums the
loss over its tokens, and `step(weight=tokens)` weighs its gradient by them. Text and network are made here; nothing is
downloaded.

    syncopate run -n 2 -- python3 hugging_face_style_loop.py
"""
import argparse

import syncopate_torch as syncopate
import torch
from torch import nn
from torch.nn import functional

WORDS, PADDING, LONGEST = 32, 0, 20
IGNORED = -100  # as cross_entropy has it


class Sentences(torch.utils.data.Dataset):
    """Sentences of 4 to 20 words that count upwards, from a word and by a step of their own."""

    def __init__(self, count, seed=1):
        generator = torch.Generator().manual_seed(seed)
        self._lengths = torch.randint(4, LONGEST + 1, (count,), generator=generator)
        self._first = torch.randint(1, WORDS, (count,), generator=generator)
        self._by = torch.randint(1, 3, (count,), generator=generator)

    def __len__(self):
        return len(self._lengths)

    def __getitem__(self, index):
        places = torch.arange(int(self._lengths[index]))
        return 1 + (self._first[index] + self._by[index] * places) % (WORDS - 1)


def collate(sentences):
    """Sentences as one batch, padded to the longest: input_ids and attention_mask [N, L], labels [N, L] with -100 where
    there is no token to predict."""
    input_ids = nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PADDING)
    attention_mask = input_ids != PADDING
    return {"input_ids": input_ids, "attention_mask": attention_mask,
            "labels": input_ids.masked_fill(~attention_mask, IGNORED)}


class SmallTransformer(nn.Module):
    """Predicts each word from those before it."""

    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Embedding(LONGEST, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.feed_forward = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(),
                                          nn.Linear(2 * width, width))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, WORDS))

    def forward(self, input_ids, attention_mask):
        """Logits [N, L, WORDS]."""
        length = input_ids.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.words(input_ids) + self.places(torch.arange(length))
        x = x + self.attention(x, x, x, attn_mask=later, key_padding_mask=~attention_mask, need_weights=False)[0]
        return self.head(x + self.feed_forward(x))


def summed_loss(model, batch):
    """The sum of the losses of a batch's tokens, each predicted from those before it."""
    logits = model(batch["input_ids"], batch["attention_mask"])
    guesses, words = logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()
    return functional.cross_entropy(guesses, words, ignore_index=IGNORED, reduction="sum")


def tokens_of(batches):
    return sum(int((batch["labels"][:, 1:] != IGNORED).sum()) for batch in batches)


def schedule(optimizer, options):
    """The rate rises over the steps of the warm-up and then falls to 0, in straight lines."""
    warm_up, steps = options.num_warmup_steps, options.max_train_steps
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (warm_up + 1), (steps - step) / max(1, steps - warm_up)))


def backward(model, batches, tokens):
    """Leaves the mean gradient of all tokens of these batches in the model. Returns the sum of their losses."""
    total = 0.0
    for batch in batches:
        loss = summed_loss(model, batch)
        (loss / tokens).backward()
        total += loss.item()
    return total


def train(job, model, options):
    step_size = options.per_device_train_batch_size * options.gradient_accumulation_steps * job.size
    # Each item of the loader has the sentences of a step of this worker.
    data = job.partition_dataset(Sentences(options.sentences), batch_size=step_size, collate_fn=list)
    adamw = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    lr_scheduler = schedule(adamw, options)
    with job.DistributedOptimizer(adamw, model) as optimizer:
        for step, sentences in zip(range(1, options.max_train_steps + 1), endless(data)):
            size = options.per_device_train_batch_size
            batches = [collate(sentences[at:at + size]) for at in range(0, len(sentences), size)]
            tokens = tokens_of(batches)
            optimizer.zero_grad()
            loss = backward(model, batches, tokens)
            optimizer.synchronize(weight=tokens)
            norm = nn.utils.clip_grad_norm_(model.parameters(), options.max_grad_norm)
            optimizer.step(weight=tokens)
            lr_scheduler.step()
            if step == 1 or step % options.logging_steps == 0:
                log(job, step, torch.tensor([loss, tokens], dtype=torch.float64), norm)


def endless(data):
    """Epoch after epoch."""
    while True:
        yield from data


def log(job, step, sums, norm):
    """sums: the loss and the tokens of this worker's step."""
    loss, tokens = job.allreduce(sums).tolist()
    if job.rank == 0:
        print(f"step {step}: {tokens:.0f} tokens, loss per token {loss / tokens:.5f}, norm {norm:.5f}", flush=True)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=1024, help="of the training set")
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-2)
    parser.add_argument("--num_warmup_steps", type=int, default=10)
    parser.add_argument("--max_train_steps", type=int, default=100)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    parser.add_argument("--logging_steps", type=int, default=10)
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    job = syncopate.init()
    model = SmallTransformer()
    job.broadcast_parameters(model)
    train(job, model, options)


if __name__ == "__main__":
    main()
