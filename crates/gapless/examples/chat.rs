//! Publishes the lines of standard input and prints everyone's: `chat FILE NAME` in any number of terminals, after
//! `gapless stream sequencer --config FILE`. The shortest file of a stream has two lines, `[stream]` and
//! `directory = "/tmp/chat"`; `docs/guides/stream.toml` has the other transports.
use gapless::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
struct Line(String, String);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, file, name] = &std::env::args().collect::<Vec<_>>()[..] else { return Err("chat FILE NAME".into()) };
    let config = StreamConfig::load(file)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    let (sender, typed) = std::sync::mpsc::channel();
    std::thread::spawn(move || std::io::stdin().lines().try_for_each(|line| line.map(|line| _ = sender.send(line))));
    let mut next = typed.try_recv();
    while next != Err(std::sync::mpsc::TryRecvError::Disconnected) || node.in_flight() > 0 {
        if node.can_publish() {
            next.iter().try_for_each(|line| node.publish_message(&Line(name.clone(), line.clone())).map(drop))?;
            next = typed.try_recv();
        }
        node.poll(100, |event| match event {
            NodeEvent::Message(message) => _ = message.read().map(|Line(name, line)| println!("{name}: {line}")),
            NodeEvent::State(state) => eprintln!("({state:?})"),
            _ => {}
        })?;
        node.wait(Duration::from_millis(10))?;
    }
    Ok(())
}
