//! The HTTP front: each request is one command or query.

use crate::hall::{Buy, CountSeats, Hold, Refused};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gapless::{CallError, Client};
use serde::Serialize;

pub fn routes(client: Client) -> Router {
    Router::new()
        .route("/seats", get(count))
        .route("/seats/{seat}/hold/{buyer}", post(hold))
        .route("/seats/{seat}/buy/{buyer}", post(buy))
        .with_state(client)
}

async fn count(State(client): State<Client>) -> Response {
    match client.query(CountSeats).await {
        Ok(seats) => Json(seats).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

async fn hold(State(client): State<Client>, Path((seat, buyer)): Path<(u32, String)>) -> Response {
    answer(client.call(Hold { seat, buyer }).await)
}

async fn buy(State(client): State<Client>, Path((seat, buyer)): Path<(u32, String)>) -> Response {
    answer(client.call(Buy { seat, buyer }).await)
}

fn answer(result: Result<impl Serialize, CallError<Refused>>) -> Response {
    match result {
        Ok(reply) => Json(reply).into_response(),
        Err(CallError::Refused(Refused::NoSuchSeat)) => (StatusCode::NOT_FOUND, "no such seat").into_response(),
        Err(CallError::Refused(Refused::Taken)) => (StatusCode::CONFLICT, "taken").into_response(),
        // The text says what became of the command.
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}
