//! What `-v` shows of header lines: credentials become `***`. Everything else, request lines among them, is shown as it
//! is.

use std::borrow::Cow;

/// A line of a head that is safe to show.
pub(super) fn masked(line: &str) -> Cow<'_, str> {
    let Some((name, value)) = line.split_once(':') else {
        return line.into();
    };
    let lower = name.trim().to_ascii_lowercase();
    let shown = match &*lower {
        // The scheme stays.
        "authorization" | "proxy-authorization" => match value.trim().split_once(' ') {
            Some((scheme, _)) => format!("{scheme} ***"),
            None => "***".to_owned(),
        },
        "location" | "content-location" | "referer" => {
            let begin = value.find("//").map_or(0, |at| at + 2);
            let end = value[begin..].find(['/', '?', '#']);
            let end = end.map_or(value.len(), |end| begin + end);
            match value[begin..end].rfind('@') {
                Some(at) => format!("***{}", &value[begin + at..]),
                None => return line.into(),
            }
        }
        name if SECRET_ENDS.iter().any(|end| name.ends_with(end)) => "***".to_owned(),
        _ => return line.into(),
    };
    format!("{name}: {shown}").into()
}

/// How the names of headers end that have a secret, such as `Set-Cookie`, `X-Api-Key` and `PRIVATE-TOKEN`.
const SECRET_ENDS: [&str; 5] = ["cookie", "api-key", "apikey", "token", "secret"];

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
            ("Cookie: a=1; b=x=y;c", "Cookie: ***"),
            ("Set-Cookie: a=1; Path=/; HttpOnly", "Set-Cookie: ***"),
            ("X-Api-Key: 1", "X-Api-Key: ***"),
            ("PRIVATE-TOKEN: 1", "PRIVATE-TOKEN: ***"),
            ("Tokens: 1", "Tokens: 1"),
            ("Location: http://u:p@h/x", "Location: ***@h/x"),
            ("Location: //u@h", "Location: ***@h"),
            ("Location: /x", "Location: /x"),
            ("Location: https://h/@bob/x", "Location: https://h/@bob/x"),
            ("Location: http://u:p@h/@bob", "Location: ***@h/@bob"),
            ("Referer: http://u:p@h/", "Referer: ***@h/"),
        ];
        for (line, shown) in cases {
            assert_eq!(masked(line), shown);
        }
    }
}
