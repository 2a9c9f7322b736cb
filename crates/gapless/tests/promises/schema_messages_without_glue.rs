//! A message of a schema is sent, published and read as an object or a view of its bytes, by clients and nodes, without
//! application code for it; another message is refused and not misread.

use gapless::prelude::*;
use gapless_schema_tests::extension_v2::{Late, Note, Order, OrderDecoder};
use gapless_schema_tests::samples::order_v2;

const PATIENCE: Duration = Duration::from_secs(60);

struct Mirror;

impl Service for Mirror {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<Sbe<Order>>(|_, order, context| {
            context.notify_object(context.session(), &Protobuf(order.clone()))?;
            context.reply(&Sbe(order))
        });
        handlers.on::<Sbe<Note>>(|_, _, _| Err("nothing is cancelled".into()));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn client_sends_and_reads_objects() {
    let host = Host::in_memory().service_from(|| Mirror).start().unwrap();
    let mut client = host.polled_client(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    let reply = client.call_message(session, &Sbe(order_v2()), PATIENCE).unwrap();
    assert_eq!(reply.message_type(), MessageType::of::<Sbe<Order>>());
    assert_eq!(reply.decode::<Sbe<Order>>().unwrap(), order_v2());
    assert_eq!(reply.decode::<OrderDecoder<'static>>().unwrap().order_id(), order_v2().order_id);
    let said = reply.decode::<Sbe<Late>>().unwrap_err().to_string();
    assert!(said.contains("not a valid Late") && said.contains("template"), "{said}");
    assert!(reply.decode::<Protobuf<Order>>().is_err(), "the encoding is another");

    client.send_message(session, &Sbe(Note { at: 8, text: "cancel".into(), author: "me".into() })).unwrap();
    let (mut refused, mut noticed) = (None, None);
    while refused.is_none() || noticed.is_none() {
        let poll = client.poll(16, |incoming| match incoming {
            Incoming::Reply { reply, .. } => refused = Some(reply.decode::<Sbe<Order>>().unwrap_err().to_string()),
            Incoming::Notice { notice, .. } => noticed = Some(notice.decode::<Protobuf<Order>>().unwrap()),
            _ => {}
        });
        poll.unwrap();
        client.wait(Duration::from_millis(20)).unwrap();
    }
    assert!(refused.unwrap().contains("nothing is cancelled"));
    assert_eq!(noticed, Some(order_v2()));
    drop(client);
    host.stop().unwrap();
}

#[test]
fn node_publishes_and_reads_objects() {
    let stream = EventStream::start(&EventStreamOptions::in_memory()).unwrap();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut node = StreamNode::new(link, StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    node.publish_object(&Sbe(order_v2())).unwrap();
    let mut read = None;
    while read.is_none() {
        let poll = node.poll(16, |event| {
            if let NodeEvent::Message(message) = event {
                assert_eq!(message.message_type(), MessageType::of::<OrderDecoder<'static>>());
                read = Some(message.decode::<Sbe<Order>>().unwrap());
            }
        });
        poll.unwrap();
    }
    assert_eq!(read, Some(order_v2()));
    drop(node);
    stream.stop().unwrap();
}
