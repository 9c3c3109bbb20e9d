"""The application as WSGI, for gunicorn and waitress."""

import gzip
import os
import sys
import zlib

ROOT = os.environ["ROOT"]


def application(environ, start_response):
    body = respond(environ, start_response)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else body


def respond(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/empty":
        start_response("204 No Content", [])
        return []
    if path == "/chunked":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (b"chunk %d\n" % number for number in range(1, 4))
    if path == "/reject":
        return whole(start_response, "413 Request Entity Too Large", b"")
    if path == "/echo":
        return echo(environ, start_response)
    if path == "/etag":
        if environ.get("HTTP_IF_NONE_MATCH") == '"v1"':
            start_response("304 Not Modified", [("ETag", '"v1"')])
            return []
        return whole(start_response, "200 OK", read("hello"), ("ETag", '"v1"'))
    if path == "/text.txt" and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
        coded = gzip.compress(read("text.txt"))
        return whole(start_response, "200 OK", coded, ("Content-Encoding", "gzip"))
    try:
        return whole(start_response, "200 OK", read(path[1:]))
    except OSError:
        return whole(start_response, "404 Not Found", b"")


def echo(environ, start_response):
    length, crc = 0, 0
    body = environ["wsgi.input"]
    # Where the server does not end the stream, the length does.
    left = int(environ.get("CONTENT_LENGTH") or sys.maxsize)
    while left > 0 and (piece := body.read(min(left, 65536))):
        left -= len(piece)
        length += len(piece)
        crc = zlib.crc32(piece, crc)
    return whole(start_response, "200 OK", b"%d %08x" % (length, crc))


def whole(start_response, status, body, *headers):
    fields = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *headers]
    start_response(status, fields)
    return [body]


def read(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read()
