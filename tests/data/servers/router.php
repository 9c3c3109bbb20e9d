<?php
// The application on PHP's built-in server: what is not here is a file.
function whole(int $status, string $body): void {
    http_response_code($status);
    header('Content-Type: text/plain');
    header('Content-Length: ' . strlen($body));
    echo $body;
}

$path = $_SERVER['REQUEST_URI'];
switch ($path) {
    case '/empty':
        http_response_code(204);
        return;
    case '/until-close':
        echo "the end\n";
        return;
    case '/reject':
        whole(413, '');
        return;
    case '/echo':
        $input = fopen('php://input', 'rb');
        $sum = hash_init('crc32b');
        $length = hash_update_stream($sum, $input);
        whole(200, $length . ' ' . hash_final($sum));
        return;
    case '/etag':
        header('ETag: "v1"');
        if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === '"v1"') {
            http_response_code(304);
        } else {
            whole(200, 'hello');
        }
        return;
    case '/text.txt':
        $body = file_get_contents(getenv('ROOT') . $path);
        if (str_contains($_SERVER['HTTP_ACCEPT_ENCODING'] ?? '', 'gzip')) {
            header('Content-Encoding: gzip');
            $body = gzencode($body);
        }
        whole(200, $body);
        return;
}
if (!is_file(getenv('ROOT') . $path)) {
    whole(404, '');
    return;
}
return false;
