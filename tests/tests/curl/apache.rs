//! `get` against the Digest authentication of Apache httpd, which checks each nonce, count and response.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};

use md5::{Digest as _, Md5};
use tests::program::PROGRAM;
use tests::servers::{Kind, WebServer};

#[test]
#[ignore = "needs apache2"]
fn digest_as_apache_checks_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("root");
    fs::create_dir(&root).expect("make a folder");
    for name in ["a.txt", "b.txt"] {
        fs::write(root.join(name), name).expect("write a file");
    }
    let mut hash = String::new();
    for byte in Md5::digest("u:the realm:p") {
        write!(hash, "{byte:02x}").expect("write to a string");
    }
    let users = directory.path().join("users");
    fs::write(&users, format!("u:the realm:{hash}\n")).expect("write a file");
    let modules = ["authn_core", "authn_file", "authz_user", "auth_digest"];
    let mut extra: String = modules
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    write!(
        extra,
        "<Location />
           AuthType Digest
           AuthName \"the realm\"
           AuthDigestProvider file
           AuthUserFile {}
           Require valid-user
         </Location>\n",
        users.display()
    )
    .expect("write to a string");
    let kind = Kind::Apache {
        index_options: String::new(),
        extra,
    };
    let server = WebServer::start(kind, &root);
    let url = |name: &str| format!("http://{}/{name}", server.address());
    let get = |args: &[&str]| -> Output {
        let mut command = Command::new(&*PROGRAM);
        command.args(["get", "-sSf"]).args(args);
        command.env_clear().output().expect("run the program")
    };
    let (a, b) = (url("a.txt"), url("b.txt?q=1"));
    for args in [
        &["--digest", "-u", "u:p", &a, &b][..],
        &["--anyauth", "-u", "u:p", &a, &b],
        &["-0", "--digest", "-u", "u:p", &a, &b],
    ] {
        let done = get(args);
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            "a.txtb.txt",
            "{args:?}: {done:?}"
        );
    }
    for args in [
        &["--digest", "-u", "u:wrong", &a][..],
        &["--digest", "-u", "other:p", &a],
        &["--basic", "-u", "u:p", &a],
        &["--digest", &a],
    ] {
        assert_eq!(get(args).status.code(), Some(22), "{args:?}");
    }
}
