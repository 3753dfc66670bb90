"""The floor of any daemon: a blocking thread a connection that sends back what it gets.  ``python echo_peer.py SOCKET``"""

from __future__ import annotations

import socket
import sys
import threading


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def main() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
