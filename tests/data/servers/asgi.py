"""The application as ASGI, for uvicorn."""

import gzip
import os
import zlib

ROOT = os.environ["ROOT"]


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"]
    headers = dict(scope["headers"])

    async def whole(status, body, *fields):
        length = [(b"content-length", b"%d" % len(body))] if status not in (204, 304) else []
        await send({"type": "http.response.start", "status": status, "headers": [*length, *fields]})
        await send({"type": "http.response.body", "body": body})

    if path == "/empty":
        await whole(204, b"")
    elif path == "/chunked":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(1, 4):
            body = b"chunk %d\n" % number
            await send({"type": "http.response.body", "body": body, "more_body": number < 3})
    elif path == "/reject":
        await whole(413, b"")
    elif path == "/close":
        await whole(200, b"bye", (b"connection", b"close"))
    elif path == "/echo":
        length, crc, more = 0, 0, True
        while more:
            message = await receive()
            piece, more = message.get("body", b""), message.get("more_body", False)
            length += len(piece)
            crc = zlib.crc32(piece, crc)
        await whole(200, b"%d %08x" % (length, crc))
    elif path == "/etag" and headers.get(b"if-none-match") == b'"v1"':
        await whole(304, b"", (b"etag", b'"v1"'))
    elif path == "/etag":
        await whole(200, read("hello"), (b"etag", b'"v1"'))
    elif path == "/text.txt" and b"gzip" in headers.get(b"accept-encoding", b""):
        await whole(200, gzip.compress(read("text.txt")), (b"content-encoding", b"gzip"))
    else:
        try:
            await whole(200, read(path[1:]))
        except OSError:
            await whole(404, b"")


def read(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read()
