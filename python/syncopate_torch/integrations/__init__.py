"""Parts of `syncopate_torch.horovod` and `syncopate_torch.lightning`."""
