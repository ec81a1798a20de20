"""PyTorch Lightning on devices of unequal speed: SyncopateStrategy, with a scheme that paces local steps.

    syncopate run --cluster ../../clusters/mixed.toml -- python3 lightning_strategy.py
    syncopate run -n 2 -- python3 lightning_strategy.py --scheme ssgd
"""
import argparse

import lightning
import torch
from fashion_mnist import USUAL_FOLDER, fashion_mnist, small_network
from torch.nn import functional
from torch.utils.data import DataLoader

from syncopate_torch.lightning import SyncopateStrategy


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = small_network()
        self.steps = 0

    def training_step(self, batch, _index):
        images, labels = batch
        self.steps += 1
        return functional.cross_entropy(self.network(images), labels)

    def validation_step(self, batch, _index):
        images, labels = batch
        right = (self.network(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, sync_dist=True)  # over the samples of all workers

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    parser.add_argument("--scheme", default="esync")
    options = parser.parse_args()
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, strategy=SyncopateStrategy(scheme=options.scheme), max_epochs=options.epochs,
        gradient_clip_val=5.0, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    model = Classifier()
    trainer.fit(model, DataLoader(fashion_mnist(options.data, "train", options.samples), batch_size=64, shuffle=True),
                DataLoader(fashion_mnist(options.data, "t10k"), batch_size=500))
    steps = [int(each) for each in trainer.strategy.all_gather(torch.tensor(model.steps))]
    if trainer.is_global_zero:
        right = trainer.callback_metrics["accuracy"]
        print(f"{trainer.world_size} workers, steps of each: {steps}, test accuracy {right:.4f}")


if __name__ == "__main__":
    main()
