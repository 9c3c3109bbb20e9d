//! What `-v` and `--trace` show of header lines: credentials become `***`. Everything else, bodies and request lines
//! among them, is shown as it is.

use std::borrow::Cow;

/// A line of a head that is safe to show.
pub(super) fn masked(line: &str) -> Cow<'_, str> {
    let Some((name, value)) = line.split_once(':') else {
        return line.into();
    };
    let value = value.trim();
    let lower = name.trim().to_ascii_lowercase();
    let shown = match &*lower {
        // The scheme stays.
        "authorization" | "proxy-authorization" => match value.split_once(' ') {
            Some((scheme, _)) => format!("{scheme} {MASK}"),
            None => MASK.into(),
        },
        "cookie" => {
            let pairs: Vec<String> = value
                .split(';')
                .map(|pair| pair_masked(pair.trim()))
                .collect();
            pairs.join("; ")
        }
        "set-cookie" => match value.split_once(';') {
            Some((pair, attributes)) => format!("{};{attributes}", pair_masked(pair)),
            None => pair_masked(value),
        },
        "location" | "content-location" | "referer" => match user_masked(value) {
            Some(shown) => shown,
            None => return line.into(),
        },
        name if SECRET_ENDS.iter().any(|end| name.ends_with(end)) => MASK.into(),
        _ => return line.into(),
    };
    format!("{name}: {shown}").into()
}

/// A cookie without its value.
fn pair_masked(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None if pair.is_empty() => String::new(),
        None => MASK.into(),
    }
}

/// A URL without its user and password; `None` if there are none.
fn user_masked(url: &str) -> Option<String> {
    // Two slashes further right are in the path or the query.
    let (scheme, rest) = url.split_once("//")?;
    if scheme.contains(['/', '?', '#']) {
        return None;
    }
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let at = rest[..end].rfind('@')?;
    Some(format!("{scheme}//{MASK}{}", &rest[at..]))
}

/// How the names of headers end that have a key or a token, such as `X-Api-Key` and `PRIVATE-TOKEN`.
const SECRET_ENDS: [&str; 4] = ["api-key", "apikey", "token", "secret"];

const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("GET / HTTP/1.1", "GET / HTTP/1.1"),
            ("Host: a:80", "Host: a:80"),
            ("Authorization: Basic dTpw", "Authorization: Basic ***"),
            ("AUTHORIZATION:Bearer x y", "AUTHORIZATION: Bearer ***"),
            ("Proxy-Authorization: token", "Proxy-Authorization: ***"),
            ("X-Authorization: a b", "X-Authorization: a b"),
            ("Cookie: a=1; b=x=y;c", "Cookie: a=***; b=***; ***"),
            ("cookie:", "cookie: "),
            (
                "Set-Cookie: a=1; Path=/; HttpOnly",
                "Set-Cookie: a=***; Path=/; HttpOnly",
            ),
            ("set-cookie: a", "set-cookie: ***"),
            ("X-Api-Key: 1", "X-Api-Key: ***"),
            ("PRIVATE-TOKEN: 1", "PRIVATE-TOKEN: ***"),
            ("Tokens: 1", "Tokens: 1"),
            ("Location: http://u:p@h/x@y", "Location: http://***@h/x@y"),
            ("Location: //u@h", "Location: //***@h"),
            ("Location: https://a@b:c@h?q", "Location: https://***@h?q"),
            ("Location: http://h/u:p@h", "Location: http://h/u:p@h"),
            ("Location: /x//u@h", "Location: /x//u@h"),
            ("Location: /?u=http://u:p@h", "Location: /?u=http://u:p@h"),
            ("Referer: http://u:p@h/", "Referer: http://***@h/"),
        ];
        for (line, shown) in cases {
            assert_eq!(masked(line), shown);
        }
    }
}
