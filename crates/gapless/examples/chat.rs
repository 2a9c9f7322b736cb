//! Publishes the lines of standard input and prints everyone's, over the transport that the file configures. Start a
//! sequencer, and then this in any number of terminals:
//!
//! ```text
//! gapless stream sequencer --config chat.toml
//! cargo run --example chat -- chat.toml anna
//! ```
//!
//! with a file `chat.toml` of two lines: `[stream]` and `directory = "/tmp/chat"`. The same over UDP: see
//! `docs/guides/stream.toml`.

use gapless::prelude::*;
use std::io::BufRead;
use std::sync::mpsc::{TryRecvError, channel};

const LINE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("a file and a name are expected: chat FILE NAME".into());
    };
    let mut config = StreamConfig::load(file)?;
    config.node.start = Start::Live; // Or Start::First, to read what was said before.
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    // Reading a terminal blocks, so a thread does it; the node is polled without a pause.
    let (sender, typed) = channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut is_over = false;
    while !(is_over && node.in_flight() == 0) {
        if node.can_publish() && !is_over {
            match typed.try_recv() {
                Ok(line) => drop(node.publish(LINE, format!("{name}: {line}").as_bytes())?),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => is_over = true,
            }
        }
        let count = node.poll(100, |event| match event {
            // All nodes see all lines in one order; the return of an own line is its acknowledgement.
            NodeEvent::Message(message) => {
                println!("{}{}", if message.own { "> " } else { "  " }, String::from_utf8_lossy(message.payload));
            }
            NodeEvent::State(state) => eprintln!("({state:?})"),
            _ => {}
        })?;
        if count == 0 {
            node.wait(Duration::from_millis(10))?;
        }
    }
    Ok(())
}
