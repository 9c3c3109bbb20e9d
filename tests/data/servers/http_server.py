"""The application on Python's http.server: files by its own handler, the rest here."""

import gzip
import os
import ssl
import zlib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = int(os.environ["IDLE"])
    extensions_map = {"": "text/plain"}

    def __init__(self, *args):
        super().__init__(*args, directory=os.environ["ROOT"])

    def do_GET(self):
        if self.path == "/empty":
            self.start(204)
        elif self.path in ("/chunked", "/trailers"):
            self.chunks()
        elif self.path == "/until-close":
            self.start(200, ("Connection", "close"))
            self.wfile.write(b"the end\n")
        elif self.path == "/close":
            self.whole(200, b"bye", ("Connection", "close"))
        elif self.path == "/text.txt" and "gzip" in self.headers.get("Accept-Encoding", ""):
            with open(self.directory + self.path, "rb") as file:
                self.whole(200, gzip.compress(file.read()), ("Content-Encoding", "gzip"))
        else:
            super().do_GET()

    def do_POST(self):
        if self.path == "/reject":
            # The body is not read, so the connection cannot serve another request.
            self.whole(413, b"", ("Connection", "close"))
        elif self.path == "/echo":
            length, crc = 0, 0
            for piece in self.pieces():
                length += len(piece)
                crc = zlib.crc32(piece, crc)
            self.whole(200, b"%d %08x" % (length, crc))
        else:
            self.send_error(404)

    def end_headers(self):
        if self.path == "/text.txt":
            self.send_header("Vary", "Accept-Encoding")
        super().end_headers()

    def handle_expect_100(self):
        return self.path == "/reject" or super().handle_expect_100()

    def pieces(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            left = int(self.headers["Content-Length"])
            while left:
                piece = self.rfile.read(min(left, 65536))
                left -= len(piece)
                yield piece
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def chunks(self):
        self.start(200, ("Transfer-Encoding", "chunked"), ("Trailer", "X-Check"))
        for number in range(1, 4):
            line = b"chunk %d\n" % number
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        trailer = b"X-Check: 3\r\n" if self.path == "/trailers" else b""
        self.wfile.write(b"0\r\n%s\r\n" % trailer)

    def whole(self, status, body, *headers):
        self.start(status, ("Content-Length", str(len(body))), *headers)
        self.wfile.write(body)

    def start(self, status, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server((os.environ["HOST"], int(os.environ["PORT"])), Handler)
if "CHAIN" in os.environ:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CHAIN"], os.environ["KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
