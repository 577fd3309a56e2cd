//! The vocabulary: one word a file. Each type checks its value where it is made, and again where it is decoded.

mod attachment;
mod database;
mod fence;
mod fence_token;
mod invalid;
mod lease_name;
mod metadata;
mod owner_id;
mod request_id;
mod shared_bytes;
mod timestamp;
mod ttl;

pub use attachment::Attachment;
pub use database::Database;
pub use fence::Fence;
pub use fence_token::FenceToken;
pub use invalid::InvalidValue;
pub use lease_name::LeaseName;
pub use metadata::Metadata;
pub use owner_id::OwnerId;
pub use request_id::RequestId;
pub use shared_bytes::SharedBytes;
pub use timestamp::Timestamp;
pub use ttl::Ttl;

#[cfg(test)]
mod tests;
