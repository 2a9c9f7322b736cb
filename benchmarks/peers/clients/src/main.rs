//! Calls and one-way messages through `async-nats` and `lapin`, in the shape of `gapless bench rpc curve`: a caller in this
//! process, a server in another, each on a runtime of one thread; every reply is checked.
//!
//! Usage: peer-clients nats|rabbitmq ADDRESS call|one-way SIZE IN_FLIGHT COUNT
//! Prints messages a second.

use bytes::Bytes;
use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Work of one run.
#[derive(Clone)]
struct Work {
    system: String,
    address: String,
    route: String,
    is_one_way: bool,
    size: usize,
    in_flight: usize,
    count: usize,
}

fn main() -> Fallible {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, address, kind, size, in_flight, count, rest @ ..] = arguments.as_slice() else {
        return Err("usage: peer-clients nats|rabbitmq ADDRESS call|one-way SIZE IN_FLIGHT COUNT".into());
    };
    let route = rest.first().cloned().unwrap_or_else(|| format!("route-{}", std::process::id()));
    let work = Work {
        system: system.clone(),
        address: address.clone(),
        route: route.clone(),
        is_one_way: kind == "one-way",
        size: size.parse()?,
        in_flight: in_flight.parse()?,
        count: count.parse()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if !rest.is_empty() {
        return runtime.block_on(serve(&work));
    }
    let mut server = Command::new(std::env::current_exe()?)
        .args(&arguments)
        .arg(&route)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output of the server")?).lines();
    lines.next().ok_or("the server ended")??;
    let begin_ns = if work.is_one_way { now_ns() } else { 0 };
    let elapsed_ns = runtime.block_on(call(&work))?;
    let elapsed_ns = if work.is_one_way {
        lines.next().ok_or("the server ended")??.parse::<u64>()? - begin_ns
    } else {
        elapsed_ns
    };
    println!("{:.0}", work.count as f64 * 1e9 / elapsed_ns as f64);
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// The clock that all processes share, ns.
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn say(text: &str) -> Fallible {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

fn increment(request: &[u8]) -> Vec<u8> {
    request.iter().map(|byte| byte.wrapping_add(1)).collect()
}

fn check(reply: &[u8], size: usize) -> Fallible {
    if reply.len() != size || reply.iter().any(|&byte| byte != 8) {
        return Err("a wrong reply".into());
    }
    Ok(())
}

async fn serve(work: &Work) -> Fallible {
    if work.system == "nats" { serve_nats(work).await } else { serve_rabbitmq(work).await }
}

async fn call(work: &Work) -> Fallible<u64> {
    if work.system == "nats" { call_nats(work).await } else { call_rabbitmq(work).await }
}

async fn nats(work: &Work) -> Fallible<async_nats::Client> {
    let options = async_nats::ConnectOptions::new().client_capacity(65_536).subscription_capacity(1 << 20);
    Ok(options.connect(format!("nats://{}", work.address)).await?)
}

async fn serve_nats(work: &Work) -> Fallible {
    let client = nats(work).await?;
    let mut requests = client.queue_subscribe(work.route.clone(), "servers".into()).await?;
    client.flush().await?;
    say("ready")?;
    let mut received = 0;
    while let Some(message) = requests.next().await {
        received += 1;
        match message.reply {
            Some(inbox) => client.publish(inbox, increment(&message.payload).into()).await?,
            None if received == work.count => say(&now_ns().to_string())?,
            None => {}
        }
    }
    Ok(())
}

async fn call_nats(work: &Work) -> Fallible<u64> {
    let client = nats(work).await?;
    let payload = Bytes::from(vec![7; work.size]);
    if work.is_one_way {
        for _ in 0..work.count {
            client.publish(work.route.clone(), payload.clone()).await?;
        }
        client.flush().await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        return Ok(0);
    }
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(format!("{inbox}.*")).await?;
    client.flush().await?;
    let begin = Instant::now();
    let (mut begun, mut done) = (0, 0);
    while done < work.count {
        while begun < work.count && begun - done < work.in_flight {
            client.publish_with_reply(work.route.clone(), format!("{inbox}.{begun}"), payload.clone()).await?;
            begun += 1;
        }
        let reply = replies.next().await.ok_or("the connection has ended")?;
        check(&reply.payload, work.size)?;
        done += 1;
    }
    Ok(begin.elapsed().as_nanos() as u64)
}

async fn rabbitmq(work: &Work) -> Fallible<(Connection, Channel)> {
    let address = format!("amqp://guest:guest@{}/%2f", work.address);
    let connection = Connection::connect(&address, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let options = QueueDeclareOptions::default();
    channel.queue_declare(work.route.as_str().into(), options, FieldTable::default()).await?;
    Ok((connection, channel))
}

async fn serve_rabbitmq(work: &Work) -> Fallible {
    let (_connection, channel) = rabbitmq(work).await?;
    let is_explicit = std::env::var_os("EXPLICIT").is_some();
    channel.basic_qos(256, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions { no_ack: !is_explicit, ..BasicConsumeOptions::default() };
    let mut requests =
        channel.basic_consume(work.route.as_str().into(), "".into(), options, FieldTable::default()).await?;
    say("ready")?;
    let mut received = 0;
    while let Some(delivery) = requests.next().await {
        let delivery = delivery?;
        received += 1;
        match (delivery.properties.reply_to(), delivery.properties.correlation_id()) {
            (Some(reply_to), Some(correlation_id)) => {
                let properties = BasicProperties::default().with_correlation_id(correlation_id.clone());
                let reply = increment(&delivery.data);
                let options = BasicPublishOptions::default();
                channel.basic_publish("".into(), reply_to.clone(), options, &reply, properties).await?;
            }
            _ if received == work.count => say(&now_ns().to_string())?,
            _ => {}
        }
        // One acknowledgement for all that came together, as the other client does.
        if is_explicit && (received % 16 == 0 || work.in_flight < 16) {
            channel.basic_ack(delivery.delivery_tag, BasicAckOptions { multiple: true }).await?;
        }
    }
    Ok(())
}

async fn call_rabbitmq(work: &Work) -> Fallible<u64> {
    let (_connection, channel) = rabbitmq(work).await?;
    let payload = vec![7; work.size];
    let options = BasicPublishOptions::default();
    if work.is_one_way {
        for _ in 0..work.count {
            let properties = BasicProperties::default();
            channel.basic_publish("".into(), work.route.as_str().into(), options, &payload, properties).await?;
        }
        // The broker may be far behind: the server says when the last one has come.
        channel.queue_declare(work.route.as_str().into(), QueueDeclareOptions::default(), FieldTable::default()).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        return Ok(0);
    }
    let direct = "amq.rabbitmq.reply-to";
    let consuming = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut replies = channel.basic_consume(direct.into(), "".into(), consuming, FieldTable::default()).await?;
    let begin = Instant::now();
    let (mut begun, mut done) = (0usize, 0usize);
    while done < work.count {
        while begun < work.count && begun - done < work.in_flight {
            let properties =
                BasicProperties::default().with_reply_to(direct.into()).with_correlation_id(begun.to_string().into());
            channel.basic_publish("".into(), work.route.as_str().into(), options, &payload, properties).await?;
            begun += 1;
        }
        let reply = replies.next().await.ok_or("the connection has ended")??;
        check(&reply.data, work.size)?;
        done += 1;
    }
    Ok(begin.elapsed().as_nanos() as u64)
}
