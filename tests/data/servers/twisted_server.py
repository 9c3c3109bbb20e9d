"""The application on Twisted Web: files by its own handler, the rest here."""

import os
import zlib

from twisted.internet import reactor, ssl
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site
from twisted.web.static import File

ROOT = os.environ["ROOT"]


class Page(Resource):
    isLeaf = True

    def __init__(self, render):
        super().__init__()
        self.render_GET = self.render_POST = render


def empty(request):
    request.setResponseCode(204)
    return b""


def chunked(request):
    for number in range(1, 4):
        request.write(b"chunk %d\n" % number)
    request.finish()
    return NOT_DONE_YET


def close(request):
    request.setHeader("Connection", "close")
    return b"bye"


def echo(request):
    body = request.content.read()
    return b"%d %08x" % (len(body), zlib.crc32(body))


def reject(request):
    request.setResponseCode(413)
    return b""


root = File(ROOT, defaultType="text/plain")
for name, render in [
    (b"empty", empty),
    (b"chunked", chunked),
    (b"close", close),
    (b"echo", echo),
    (b"reject", reject),
]:
    root.putChild(name, Page(render))
site = Site(root, timeout=int(os.environ["IDLE"]))
port, host = int(os.environ["PORT"]), os.environ["HOST"]
if "CHAIN" in os.environ:
    context = ssl.DefaultOpenSSLContextFactory(
        os.environ["KEY"], os.environ["CHAIN"], sslmethod=ssl.SSL.TLS_METHOD
    )
    reactor.listenSSL(port, site, context, interface=host)
else:
    reactor.listenTCP(port, site, interface=host)
reactor.run()
