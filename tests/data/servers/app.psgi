# The application as PSGI, for Starman.
use strict;
use warnings;
use Compress::Zlib qw(crc32 memGzip);

sub whole {
    my ($status, $body, @fields) = @_;
    return [$status, ['Content-Type' => 'text/plain', 'Content-Length' => length $body, @fields], [$body]];
}

sub echo {
    my ($input) = @_;
    my ($length, $crc) = (0, crc32(''));
    while ($input->read(my $piece, 65536)) {
        $length += length $piece;
        $crc = crc32($piece, $crc);
    }
    return whole(200, sprintf '%d %08x', $length, $crc);
}

sub file {
    my ($name) = @_;
    open my $file, '<:raw', "$ENV{ROOT}$name" or return;
    local $/;
    return scalar <$file>;
}

sub respond {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    return [204, [], []] if $path eq '/empty';
    return whole(413, '') if $path eq '/reject';
    return whole(200, 'bye', Connection => 'close') if $path eq '/close';
    return echo($env->{'psgi.input'}) if $path eq '/echo';
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/plain']]);
        $writer->write("chunk $_\n") for 1 .. 3;
        $writer->close;
    } if $path eq '/chunked';
    return [304, [ETag => '"v1"'], []] if $path eq '/etag' && ($env->{HTTP_IF_NONE_MATCH} // '') eq '"v1"';
    return whole(200, 'hello', ETag => '"v1"') if $path eq '/etag';
    my $body = file($path);
    return whole(404, '') unless defined $body && $path ne '/n';
    return whole(200, memGzip($body), 'Content-Encoding' => 'gzip')
        if $path eq '/text.txt' && ($env->{HTTP_ACCEPT_ENCODING} // '') =~ /gzip/;
    return whole(200, $body);
}

sub {
    my ($env) = @_;
    my $response = respond($env);
    $response->[2] = [] if $env->{REQUEST_METHOD} eq 'HEAD';
    return $response;
};
