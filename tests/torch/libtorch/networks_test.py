"""Goal:   a built-in network is the one of its paper: an independent PyTorch module gives the same outputs with the same
        parameters.
Method: network_outputs writes a checkpoint and its outputs; the modules of networks.py load the checkpoint into the
        version of PyTorch that has the same libtorch, and must give the same outputs in evaluation mode to 1e-4,
        and the same running statistics after a pass in training mode.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

import torch
from networks import DEFAULT_INPUTS, INPUTS, NETWORKS

PROGRAM = os.environ["SYNCOPATE_NETWORK_OUTPUTS"]
CLASSES = 10
TOLERANCE = 1e-4


def read_safetensors(path):
    """Returns the metadata and the tensors of a file, which has the length of a JSON header, the header, and float32 values."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    values = bytearray(content[8 + length:])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, described in header.items():
        begin, end = described["data_offsets"]
        flat = torch.frombuffer(values, dtype=torch.float32, offset=begin, count=(end - begin) // 4)
        tensors[name] = flat.view(described["shape"])
    return metadata, tensors


def distance(found, expected):
    """Returns the largest difference, relative to the largest value if that is above 1."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1)).item()


class Networks(unittest.TestCase):
    def files_of(self, name, channels, side):
        """Runs network_outputs; returns the checkpoint and the inputs and outputs of its passes."""
        with tempfile.TemporaryDirectory(prefix="syncopate-networks-") as folder:
            command = [PROGRAM, name, str(channels), str(side), str(CLASSES), folder]
            subprocess.run(command, check=True)
            _, model = read_safetensors(pathlib.Path(folder) / "model.safetensors")
            metadata, passes = read_safetensors(pathlib.Path(folder) / "passes.safetensors")
        self.assertEqual(metadata["libtorch"], re.match(r"\d+\.\d+\.\d+", torch.__version__)[0])
        return model, passes

    def assert_equal_passes(self, name, channels, side):
        model, passes = self.files_of(name, channels, side)
        module = NETWORKS[name](channels, side, CLASSES)
        counters = {key: value for key, value in module.state_dict().items() if key.endswith("num_batches_tracked")}
        module.load_state_dict({**model, **counters})
        module.eval()
        outputs = module(passes["inputs"])
        self.assertGreater(distance(outputs, outputs.mean(0)), 0.01, "outputs hardly depend on inputs")
        self.assertLess(distance(outputs, passes["outputs"]), TOLERANCE)
        module.train()
        module(passes["inputs"])
        for key, value in module.named_buffers():
            if key not in counters:
                self.assertLess(distance(value, passes[f"after.{key}"]), TOLERANCE, key)

    def test_pytorch_computes_the_same(self):
        torch.set_num_threads(1)
        with torch.no_grad():
            for name in NETWORKS:
                for channels, side in INPUTS.get(name, DEFAULT_INPUTS):
                    with self.subTest(network=name, channels=channels, side=side):
                        self.assert_equal_passes(name, channels, side)


if __name__ == "__main__":
    unittest.main()
