//! The program of the tutorial: seats of a hall over HTTP, in one process.

use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Default, Serialize, Deserialize, State)]
struct Hall {
    buyers: BTreeMap<u32, String>,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = Taken)]
struct Buy {
    seat: u32,
    buyer: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Taken;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Sold;

#[gapless::service]
impl Hall {
    #[command]
    fn buy(&mut self, Buy { seat, buyer }: Buy, context: &mut Context<'_>) -> Result<u64, Taken> {
        if self.buyers.contains_key(&seat) {
            return Err(Taken);
        }
        self.buyers.insert(seat, buyer);
        Ok(context.sequence())
    }

    #[query]
    fn sold(&self, _: Sold) -> u64 {
        self.buyers.len() as u64
    }
}

async fn buy(
    Shared(client): Shared<Client>,
    Path((seat, buyer)): Path<(u32, String)>,
) -> Result<Json<u64>, (StatusCode, String)> {
    match client.call(Buy { seat, buyer }).await {
        Ok(ticket) => Ok(Json(ticket)),
        Err(CallError::Refused(Taken)) => Err((StatusCode::CONFLICT, "taken".to_owned())),
        Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

async fn sold(Shared(client): Shared<Client>) -> Result<Json<u64>, (StatusCode, String)> {
    client.query(Sold).await.map(Json).map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args().nth(1).unwrap_or("data".to_owned());
    let address = std::env::args().nth(2).unwrap_or("127.0.0.1:8080".to_owned());
    let host = Host::at(&place)?.service(Hall::default()).start()?;
    let routes =
        Router::new().route("/buy/{seat}/{buyer}", post(buy)).route("/sold", get(sold)).with_state(host.client()?);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, routes).with_graceful_shutdown(async { _ = tokio::signal::ctrl_c().await }).await?;
    host.stop()?;
    Ok(())
}

#[test]
fn seats_are_sold_once() {
    let host = Host::in_memory().service(Hall::default()).start().unwrap();
    let client = host.blocking_client().unwrap();
    let buy = |seat, buyer: &str| client.call(Buy { seat, buyer: buyer.to_owned() });
    assert!(buy(1, "Ada").is_ok());
    assert_eq!(buy(1, "Bob"), Err(CallError::Refused(Taken)));
    assert_eq!(client.query(Sold).unwrap(), 1);
}
