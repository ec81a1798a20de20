"""A language model's loop: sentences of unequal length, gradients accumulated over several batches, each token counted once.

The loss of a step is the mean over all tokens of all workers, not the mean of the workers' means.

    syncopate run -n 2 -- python3 token_weights.py
"""
import argparse

import syncopate_torch as syncopate
import torch
from torch.nn import functional

WORDS, PADDING = 32, 0
BATCHES_A_STEP = 4


class NextWord(torch.nn.Module):
    """Predicts the next word from those before it."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, 32)
        self.memory = torch.nn.GRU(32, 64, batch_first=True)
        self.output = torch.nn.Linear(64, WORDS)

    def forward(self, words):
        return self.output(self.memory(self.embedding(words))[0])


def sentences(generator, count=8):
    """Sentences that count upwards, from a word and by a step of their own, padded to the longest."""
    lengths = torch.randint(4, 20, (count, 1), generator=generator)
    first = torch.randint(1, WORDS, (count, 1), generator=generator)
    by = torch.randint(1, 3, (count, 1), generator=generator)
    places = torch.arange(20)
    words = 1 + (first + by * places) % (WORDS - 1)
    return words.masked_fill(places >= lengths, PADDING)


def token_losses(model, batch):
    """The sum over the tokens of a batch."""
    guesses = model(batch[:, :-1])
    return functional.cross_entropy(guesses.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PADDING, reduction="sum")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)

    job = syncopate.init()
    generator = torch.Generator().manual_seed(job.rank)
    model = NextWord()
    job.broadcast_parameters(model)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    with job.DistributedOptimizer(adam, model, batch_size=400) as optimizer:
        for step in range(options.steps):
            batches = [sentences(generator) for _ in range(BATCHES_A_STEP)]
            tokens = sum(int((batch[:, 1:] != PADDING).sum()) for batch in batches)
            optimizer.zero_grad()
            total = 0.0
            for batch in batches:
                loss = token_losses(model, batch) / tokens
                loss.backward()
                total += loss.item()
            optimizer.synchronize(weight=tokens)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(weight=tokens)
            if job.rank == 0 and (step == 0 or (step + 1) % 10 == 0):
                print(f"step {step + 1}: {tokens} tokens here, loss per token {total:.3f}", flush=True)


if __name__ == "__main__":
    main()
