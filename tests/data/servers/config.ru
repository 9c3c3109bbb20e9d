# The application as Rack, for Puma.
require "stringio"
require "zlib"

ROOT = ENV.fetch("ROOT")

def whole(status, body, fields = {})
  [status, { "Content-Type" => "text/plain", "Content-Length" => body.bytesize.to_s }.merge(fields), [body]]
end

def echo(input)
  length = 0
  crc = 0
  while (piece = input.read(65_536))
    length += piece.bytesize
    crc = Zlib.crc32(piece, crc)
  end
  whole(200, format("%d %08x", length, crc))
end

run(lambda do |env|
  case path = env["PATH_INFO"]
  when "/empty" then [204, {}, []]
  when "/chunked" then [200, { "Content-Type" => "text/plain" }, (1..3).lazy.map { |number| "chunk #{number}\n" }]
  when "/reject" then whole(413, "")
  when "/close" then whole(200, "bye", "Connection" => "close")
  when "/echo" then echo(env["rack.input"])
  when "/etag"
    next [304, { "ETag" => '"v1"' }, []] if env["HTTP_IF_NONE_MATCH"] == '"v1"'
    whole(200, "hello", "ETag" => '"v1"')
  else
    file = File.join(ROOT, path)
    next whole(404, "") unless File.file?(file)
    body = File.binread(file)
    if path == "/text.txt" && env["HTTP_ACCEPT_ENCODING"].to_s.include?("gzip")
      next whole(200, Zlib.gzip(body), "Content-Encoding" => "gzip")
    end
    whole(200, body)
  end
end)
