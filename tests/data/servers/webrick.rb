# The application on WEBrick: files by its own handler, the rest here.
require "webrick"
require "webrick/https"
require "zlib"

options = {
  BindAddress: ENV.fetch("HOST"),
  Port: ENV.fetch("PORT").to_i,
  DocumentRoot: ENV.fetch("ROOT"),
  RequestTimeout: ENV.fetch("IDLE").to_i,
  AccessLog: []
}
if (chain = ENV["CHAIN"])
  options.update(
    SSLEnable: true,
    SSLCertificate: OpenSSL::X509::Certificate.new(File.read(chain)),
    SSLPrivateKey: OpenSSL::PKey.read(File.read(ENV.fetch("KEY")))
  )
end
server = WEBrick::HTTPServer.new(options)

server.mount_proc("/empty") { |_, response| response.status = 204 }
server.mount_proc("/reject") { |_, response| response.status = 413 }
server.mount_proc("/close") do |_, response|
  response.keep_alive = false
  response.body = "bye"
end
server.mount_proc("/chunked") do |_, response|
  response.chunked = true
  response.body = proc { |out| (1..3).each { |number| out.write("chunk #{number}\n") } }
end
server.mount_proc("/echo") do |request, response|
  request.continue
  length = 0
  crc = 0
  request.body do |piece|
    length += piece.bytesize
    crc = Zlib.crc32(piece, crc)
  end
  response.body = format("%d %08x", length, crc)
end
server.mount_proc("/text.txt") do |request, response|
  body = File.binread(File.join(ENV.fetch("ROOT"), "text.txt"))
  if request["Accept-Encoding"].to_s.include?("gzip")
    response["Content-Encoding"] = "gzip"
    body = Zlib.gzip(body)
  end
  response.body = body
end

trap("TERM") { server.shutdown }
server.start
