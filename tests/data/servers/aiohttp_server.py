"""The application on aiohttp: files by its own handler, the rest here."""

import os
import ssl
import zlib

from aiohttp import web

ROOT = os.environ["ROOT"]


async def chunked(request):
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    for number in range(1, 4):
        await response.write(b"chunk %d\n" % number)
    return response


async def echo(request):
    length, crc = 0, 0
    async for piece in request.content.iter_any():
        length += len(piece)
        crc = zlib.crc32(piece, crc)
    return web.Response(text="%d %08x" % (length, crc))


async def reject(request):
    response = web.Response(status=413)
    response.force_close()
    return response


async def close(request):
    response = web.Response(text="bye")
    response.force_close()
    return response


async def empty(request):
    return web.Response(status=204)


async def text(request):
    with open(ROOT + "/text.txt", encoding="ascii") as file:
        response = web.Response(text=file.read())
    response.enable_compression()
    return response


async def refuse_or_continue(request):
    if request.path != "/reject":
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


application = web.Application(client_max_size=0)
application.router.add_get("/empty", empty)
application.router.add_get("/chunked", chunked)
application.router.add_get("/close", close)
application.router.add_get("/text.txt", text)
application.router.add_post("/echo", echo)
application.router.add_post("/reject", reject, expect_handler=refuse_or_continue)
application.router.add_static("/", ROOT)

context = None
if "CHAIN" in os.environ:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CHAIN"], os.environ["KEY"])
web.run_app(
    application,
    host=os.environ["HOST"],
    port=int(os.environ["PORT"]),
    ssl_context=context,
    keepalive_timeout=int(os.environ["IDLE"]),
    shutdown_timeout=0.1,
    access_log=None,
)
