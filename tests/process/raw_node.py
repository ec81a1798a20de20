"""A node that encodes the wire protocol itself, so that tests can send invalid messages. OpenSSL's program encrypts it."""
import hashlib
import socket
import struct
import subprocess

HELLO, WELCOME, REFUSED, MESSAGE = 1, 2, 3, 4
VERSION = 3
TO_COORDINATOR = 1
ROLE_WORKER = 1


def varint(value):
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def message(fields):
    """Encodes a protobuf message; `fields` maps field numbers to numbers, texts or encoded messages."""
    encoded = b""
    for number, value in fields.items():
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            encoded += varint(number << 3 | 2) + varint(len(content)) + content
    return encoded


class RawNode:
    """With a key it is encrypted, as a member started by hand is."""

    def __init__(self, address, key=""):
        self.key, self.tls = key.strip(), None
        if self.key:
            self.socket, theirs = socket.socketpair()
            shared = hashlib.sha256(b"syncopate tls 1.3 " + self.key.encode()).hexdigest()
            self.tls = subprocess.Popen(
                ["openssl", "s_client", "-quiet", "-tls1_3", "-connect", address, "-psk_identity", "syncopate", "-psk", shared],
                stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
            theirs.close()
            self.socket.settimeout(60)
        else:
            host, port = address.rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        if self.tls is not None:
            self.tls.kill()
            self.tls.wait()

    def send(self, kind, payload, tag=0, version=VERSION):
        header = struct.pack("<4sHHIIQ", b"SYNC", version, kind, tag, 0, len(payload))
        self.socket.sendall(header + payload)

    def receive_exactly(self, count):
        data = b""
        while len(data) < count:
            chunk = self.socket.recv(count - len(data))
            if not chunk:
                raise AssertionError(f"the stream ended after {len(data)} of {count} bytes")
            data += chunk
        return data

    def receive(self):
        """Returns the kind and the payload of the next frame."""
        _, _, kind, _, _, length = struct.unpack("<4sHHIIQ", self.receive_exactly(24))
        return kind, self.receive_exactly(length)

    def say_hello(self, version=VERSION):
        self.send(HELLO, message({1: self.key, 2: "127.0.0.1:1"}), version=version)
        return self.receive()

    def join_as_worker(self, index, agreement):
        join = message({1: ROLE_WORKER, 2: index, 3: "raw", 4: 99, 5: "127.0.0.1:1", 7: agreement})
        self.send(MESSAGE, message({1: join}), tag=TO_COORDINATOR)
