"""PyTorch Lightning over backend syncopate: DDPStrategy takes its name.

    python3 lightning_ddp.py --devices 2             # Lightning starts the other processes
"""
import argparse

import lightning
import syncopate_torch  # noqa: F401 (makes the backend known)
import torch
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from lightning.pytorch.strategies import DDPStrategy
from torch.nn import functional
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = small_network()

    def training_step(self, batch, _index):
        images, labels = batch
        loss = functional.cross_entropy(self.network(images), labels)
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="syncopate")
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lightning.seed_everything(1)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=options.devices, strategy=DDPStrategy(process_group_backend=options.backend),
        max_epochs=options.epochs, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    model = Classifier()
    trainer.fit(model, DataLoader(fashion_mnist(options.data, "train", options.samples), batch_size=64, shuffle=True))
    if trainer.is_global_zero:
        print(f"{torch.distributed.get_backend()}: {trainer.world_size} ranks, test accuracy "
              f"{accuracy(model.network, fashion_mnist(options.data, 't10k')):.4f}")


if __name__ == "__main__":
    main()
