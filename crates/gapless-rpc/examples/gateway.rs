//! A gateway: it asks ten shops at once for the price of an article and answers with the prices that arrived in time.
//! Four processes: two instances of the shops, the gateway and a client.
//!
//! ```sh
//! cargo run -p gapless-rpc --example gateway                # starts all four
//! cargo run -p gapless-rpc --example gateway -- shops       # or one of each, in terminals of their own
//! cargo run -p gapless-rpc --example gateway -- gateway
//! cargo run -p gapless-rpc --example gateway -- client
//! ```

use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallError, CallOptions, Caller, Domain, DomainOptions, Message, Rejection};
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
struct Ask {
    shop: u32,
    article: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Offers {
    prices: Vec<(u32, u64)>,
    late: Vec<u32>,
}

type Failure = Box<dyn std::error::Error>;

const SHOPS: u32 = 10;
const SLOW_SHOP: u32 = 7;
const PATIENCE: Duration = Duration::from_secs(4);

fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some("shops") => {
            serve(|domain, spawn| domain.serve("shops/price").workers(SHOPS as usize).tasks(spawn).handle_async(price))
        }
        Some("gateway") => serve(|domain, spawn| {
            let shops = domain.caller::<Ask, u64>("shops/price")?;
            domain.serve("gateway/offers").workers(4).tasks(spawn).handle_async(move |article: String, context| {
                let shops = shops.clone();
                async move { offers(&shops, &article, &context).await }
            })
        }),
        Some("client") => client(),
        _ => all(),
    }
}

async fn price(ask: Ask, _context: CallContext) -> Result<u64, Rejection> {
    if ask.shop == SLOW_SHOP {
        tokio::time::sleep(PATIENCE).await;
    }
    Ok(100 * u64::from(ask.shop) + ask.article.len() as u64)
}

/// Starts ten calls and joins them, each within half of the remaining time.
async fn offers(shops: &Caller<Ask, u64>, article: &str, context: &CallContext) -> Result<Offers, Rejection> {
    let timeout = context.remaining().map(|left| left / 2);
    let options = CallOptions { timeout, wait_for_route: timeout, ..CallOptions::default() };
    let ask = |shop| shops.start_with(Ask { shop, article: article.to_owned() }, &options);
    let mut offers = Offers { prices: Vec::new(), late: Vec::new() };
    for (shop, outcome) in (1..).zip(together::all_async((1..=SHOPS).map(ask)).await) {
        match outcome {
            Ok(price) => offers.prices.push((shop, price)),
            Err(CallError::TimedOut { .. }) => offers.late.push(shop),
            Err(error) => return Err(error.to_string().into()),
        }
    }
    Ok(offers)
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn serve(
    offer: impl FnOnce(&Domain, Box<dyn Fn(Task) + Send + Sync>) -> Result<gapless_rpc::ServedRoute, gapless_rpc::RpcError>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let handle = runtime.handle().clone();
    let domain = Domain::open_from_environment("gateway-example", DomainOptions::default())?;
    let _route = offer(&domain, Box::new(move |task| drop(handle.spawn(task))))?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

fn client() -> Result<(), Failure> {
    let domain = Domain::open_from_environment("gateway-example", DomainOptions::default())?;
    let gateway = domain.caller::<String, Offers>("gateway/offers")?;
    let (timeout, wait_for_route) = (Some(PATIENCE), Some(PATIENCE / 2));
    let offers =
        gateway.call_with("violin".to_owned(), &CallOptions { timeout, wait_for_route, ..CallOptions::default() })?;
    let cheapest = offers.prices.iter().min_by_key(|(_, price)| *price).ok_or("no shop has answered")?;
    println!("{} of {SHOPS} shops answered in time; too late: {:?}", offers.prices.len(), offers.late);
    println!("shop {} is the cheapest: {}", cheapest.0, cheapest.1);
    Ok(())
}

fn all() -> Result<(), Failure> {
    let start = |role: &&str, input| Command::new(std::env::current_exe()?).arg(role).stdin(input).spawn();
    let roles = ["shops", "shops", "gateway"];
    let servers: Vec<Child> =
        roles.iter().map(|role| start(role, Stdio::piped())).collect::<Result<_, std::io::Error>>()?;
    let client = start(&"client", Stdio::null())?.wait()?;
    for mut server in servers {
        drop(server.stdin.take());
        server.wait()?;
    }
    if client.success() { Ok(()) } else { Err("the client has failed".into()) }
}
