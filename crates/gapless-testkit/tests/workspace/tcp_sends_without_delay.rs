//! TCP connections set `TCP_NODELAY`: otherwise a second small write waits for the acknowledgement of the first, by up
//! to 40 ms. A file that connects or accepts sets it, or uses `TcpSocket` or `TcpConnection`, which do.

use std::path::Path;

use super::files_are_opened_in_their_folder::{is_of_test, is_of_tests};
use super::rust_tokens;
use super::workspace;

/// Files whose connections send nothing.
const REASONS: [(&str, &str); 2] = [
    ("gapless-load/src/peers/rabbitmq/node.rs", "a look whether somebody listens"),
    ("gapless-supervisor/src/driver/readiness.rs", "a look whether somebody listens"),
];

#[test]
fn tcp_sends_without_delay() {
    let folder = workspace::root().join("crates");
    let (mut wrong, mut idle, mut connecting) = (Vec::new(), REASONS.map(|(of, _)| of).to_vec(), 0);
    for (_, crate_folder) in workspace::crates() {
        for file in workspace::sources(&crate_folder.join("src")) {
            let name = file.strip_prefix(&folder).expect("the file is in the workspace").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).expect("a source file can be read");
            if is_of_tests(Path::new(&name)) || name.starts_with("gapless-testkit/") || !text.contains("Tcp") {
                continue;
            }
            let Some(sets) = sets_the_option(&text) else { continue };
            connecting += 1;
            let is_excused = REASONS.iter().any(|(of, _)| name == *of);
            idle.retain(|of| name != *of || sets);
            if !sets && !is_excused {
                wrong.push(name);
            }
        }
    }
    assert!(connecting > 6, "only {connecting} files connect");
    assert!(wrong.is_empty(), "TCP without set_nodelay in {}", wrong.join(", "));
    assert!(idle.is_empty(), "these need no reason: {}", idle.join(", "));
}

/// `None` for a source that neither connects nor accepts.
fn sets_the_option(text: &str) -> Option<bool> {
    let mut words = Vec::new();
    for item in rust_tokens::items(&rust_tokens::tokens(text)).1 {
        if !item.attributes.iter().any(|attribute| is_of_test(attribute)) {
            rust_tokens::words(item.body, &mut words);
        }
    }
    let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
    let connects = ["connect", "connect_timeout"].iter().any(|call| has(["TcpStream", call]));
    let accepts = words.contains(&"TcpListener") && words.contains(&"accept");
    let opens = has(["SocketType", "STREAM"]) && words.contains(&"ipproto");
    let sets = ["set_nodelay", "set_tcp_nodelay", "TcpConnection"].iter().any(|word| words.contains(word));
    (connects || accepts || opens).then(|| sets || has(["TcpSocket", "accepted"]))
}

#[test]
fn delayed_connections_are_found() {
    assert_eq!(sets_the_option("fn a() { TcpStream::connect(b)?.write_all(c) }"), Some(false));
    assert_eq!(sets_the_option("fn a() { TcpStream::connect(b)?.set_nodelay(true) }"), Some(true));
    assert_eq!(sets_the_option("fn a(b: &TcpListener) { b.accept()?.0.write_all(c) }"), Some(false));
    assert_eq!(sets_the_option("fn a(b: &TcpListener) { TcpSocket::accepted(b.accept()?.0, 0) }"), Some(true));
    assert_eq!(sets_the_option("fn a() { TcpListener::bind(b).is_ok() }"), None);
    assert_eq!(sets_the_option("#[cfg(test)] mod tests { fn a() { TcpStream::connect(b) } }"), None);
}
