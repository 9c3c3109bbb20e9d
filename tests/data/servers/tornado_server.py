"""The application on Tornado: files by its own handler, the rest here."""

import asyncio
import os
import ssl
import zlib

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler, StaticFileHandler, stream_request_body

ROOT = os.environ["ROOT"]


class Empty(RequestHandler):
    def get(self):
        self.set_status(204)


class Chunked(RequestHandler):
    async def get(self):
        for number in range(1, 4):
            self.write(b"chunk %d\n" % number)
            await self.flush()


class Close(RequestHandler):
    def get(self):
        self.set_header("Connection", "close")
        self.write("bye")


@stream_request_body
class Echo(RequestHandler):
    length, crc = 0, 0

    def data_received(self, piece):
        self.length += len(piece)
        self.crc = zlib.crc32(piece, self.crc)

    def post(self):
        self.write("%d %08x" % (self.length, self.crc))


@stream_request_body
class Reject(RequestHandler):
    def prepare(self):
        self.set_status(413)
        self.finish()

    def data_received(self, piece):
        pass


async def main():
    application = Application(
        [
            ("/empty", Empty),
            ("/chunked", Chunked),
            ("/close", Close),
            ("/echo", Echo),
            ("/reject", Reject),
            ("/(.*)", StaticFileHandler, {"path": ROOT}),
        ],
        compress_response=True,
    )
    context = None
    if "CHAIN" in os.environ:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["CHAIN"], os.environ["KEY"])
    server = HTTPServer(
        application,
        ssl_options=context,
        idle_connection_timeout=int(os.environ["IDLE"]),
        max_body_size=1 << 30,
    )
    server.listen(int(os.environ["PORT"]), os.environ["HOST"])
    await asyncio.Event().wait()


asyncio.run(main())
