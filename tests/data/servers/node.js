// The application on Node.js's http and https.
"use strict";
const fs = require("fs");
const path = require("path");
const zlib = require("zlib");
const { HOST, PORT, IDLE, ROOT, CHAIN, KEY } = process.env;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

function echo(request, response) {
  let length = 0;
  let crc = -1;
  request.on("data", (piece) => {
    length += piece.length;
    for (const byte of piece) crc = (crc >>> 8) ^ table[(crc ^ byte) & 255];
  });
  request.on("end", () => {
    const sum = (~crc >>> 0).toString(16).padStart(8, "0");
    response.end(`${length} ${sum}`);
  });
}

function reject(response) {
  response.writeHead(413, { Connection: "close" }).end();
}

function chunks(response, trailer) {
  if (trailer) {
    response.setHeader("Trailer", "X-Check");
    response.addTrailers({ "X-Check": "3" });
  }
  for (let number = 1; number <= 3; number++) response.write(`chunk ${number}\n`);
  response.end();
}

function text(request, response) {
  const body = fs.readFileSync(path.join(ROOT, "text.txt"));
  const wanted = request.headers["accept-encoding"] || "";
  const coders = { gzip: zlib.gzipSync, br: zlib.brotliCompressSync };
  const coding = Object.keys(coders).find((name) => wanted.includes(name));
  if (!coding) return response.end(body);
  response.setHeader("Content-Encoding", coding);
  response.end(coders[coding](body));
}

function file(request, response) {
  fs.readFile(path.join(ROOT, path.normalize(request.url)), (error, body) => {
    response.statusCode = error ? 404 : 200;
    response.setHeader("Content-Length", body ? body.length : 0);
    response.end(body);
  });
}

function answer(request, response) {
  switch (request.url) {
    case "/empty": return response.writeHead(204).end();
    case "/chunked": return chunks(response, false);
    case "/trailers": return chunks(response, true);
    case "/close": return response.writeHead(200, { Connection: "close" }).end("bye");
    case "/text.txt": return text(request, response);
    case "/echo": return echo(request, response);
    case "/reject": return reject(response);
    case "/until-close":
      response.useChunkedEncodingByDefault = false;
      return response.writeHead(200, { Connection: "close" }), response.write("the end\n"), response.end();
    case "/etag":
      response.setHeader("ETag", '"v1"');
      if (request.headers["if-none-match"] === '"v1"') return response.writeHead(304).end();
  }
  file(request, response);
}

const server = CHAIN
  ? require("https").createServer({ cert: fs.readFileSync(CHAIN), key: fs.readFileSync(KEY) }, answer)
  : require("http").createServer(answer);
server.on("checkContinue", (request, response) => {
  if (request.url === "/reject") return reject(response);
  response.writeContinue();
  answer(request, response);
});
server.keepAliveTimeout = IDLE * 1000;
server.listen(PORT, HOST);
process.on("SIGTERM", () => process.exit());
