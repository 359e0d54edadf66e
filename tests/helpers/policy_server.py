"""A policy server that answers as a test wants."""

from __future__ import annotations

import threading

from manikin.policy.remote.wire import pack, unpack


class Server:
    """An openpi server: metadata first, then an answer to each request; a word instead says that it failed, None hangs
    up. ``sent`` counts the answers."""

    def __init__(self, answer, *, port: int = 0, metadata=None) -> None:
        from websockets.sync.server import serve

        self.answer, self.seen, self.headers, self.sent = answer, [], [], 0
        self.metadata = {"model": "made up"} if metadata is None else metadata
        self._server = serve(self._talk, "127.0.0.1", port, compression=None, max_size=None)
        self.port = self._server.socket.getsockname()[1]
        self.url = f"ws://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _talk(self, socket) -> None:
        self.headers.append(socket.request.headers.get("Authorization"))
        socket.send(pack(self.metadata))
        for message in socket:
            request = unpack(message)
            self.seen.append(request)
            answer = self.answer(request)
            for one in answer if isinstance(answer, list) else [answer]:
                if one is None:
                    return
                socket.send(one if isinstance(one, str | bytes) else pack(one))
                self.sent += 1
                if isinstance(one, str):
                    return

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
