"""The backend "syncopate" of torch.distributed: process groups, works and futures."""
