//! Publishes the lines of standard input and prints everyone's: `chat FILE NAME` in any number of terminals, after
//! `gapless stream sequencer --config FILE`. A file of two lines is enough: `[stream]` and `directory = "/tmp/chat"`.
use gapless::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
struct Line(String, String);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, file, name] = &std::env::args().collect::<Vec<_>>()[..] else { return Err("chat FILE NAME".into()) };
    let config = StreamConfig::load(file)?;
    let mut node = StreamNode::new(config.link()?, config.node_options(None));
    let (sender, typed) = std::sync::mpsc::sync_channel(0); // A thread that has ended leaves no line behind.
    let typing = std::thread::spawn(move || std::io::stdin().lines().try_for_each(|line| sender.send(line)));
    while !typing.is_finished() || node.in_flight() > 0 {
        if let Some(Ok(line)) = node.can_publish().then(|| typed.try_recv()) {
            node.publish_message(&Line(name.clone(), line?))?;
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
