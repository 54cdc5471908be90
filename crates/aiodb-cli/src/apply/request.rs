//! The lines that `aiodb apply` reads and prints.

use crate::error::CliError;
use crate::options::parse_durability;
use aiodb::Durability;
use serde::Deserialize;
use serde_json::{Value, json};

/// A line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What the answer is known by.
    pub id: u64,
    /// Requests of one writer stay in their order.
    #[serde(default)]
    pub writer: u64,
    durability: Option<String>,
    /// Applied all together or not at all.
    pub changes: Vec<Change>,
}

/// A put, or a delete where there is no value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub table: String,
    pub key: String,
    pub value: Option<String>,
}

impl Request {
    /// What the request is to survive when it is acknowledged.
    pub fn durability(&self) -> Result<Durability, CliError> {
        self.durability.as_deref().map_or(Ok(Durability::Sync), parse_durability).map_err(CliError::Usage)
    }
}

/// A line of output.
pub fn answer(id: u64, outcome: &Result<(), CliError>) -> Value {
    match outcome {
        Ok(()) => json!({ "id": id }),
        Err(error) => json!({"id": id, "error": {"kind": error.kind(), "message": error.to_string()}}),
    }
}
