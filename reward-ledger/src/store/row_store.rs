//! Every store over ordered rows is a [`Store`]: what it adds is how one transaction is run and made durable.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use lease_core::LeaseName;

use super::transaction::{Transaction, archive, join_record, read_fence_state, read_payments, read_receipt};
use super::{
    AmendRequest, Amended, ArchivePage, ArchiveTable, Archived, BatchRequest, ClaimRecord, ClaimRequest,
    Cursor, Deliveries, Health, LeaseRequest, LeasedRows, OutboxQuery, Page, Query, Records, ResetRequest,
    Restored, ReversalRequest, Sealed, SettleRequest, Standing, Store, StoreFuture, Table, pages, queries,
};
use crate::core::{
    BatchOutcome, ClaimOutcome, PaymentOutcome, PaymentReport, ReportOutcome, ReversalOutcome,
};
use crate::error::StorageFailure;
use crate::event_id::RewardEventId;
use crate::limits::PAGE_ROWS_MAX;
use crate::types::{
    Claim, ClaimId, FenceState, OrderId, PaymentAttempt, PaymentStart, PlayerId, Settled, UnixMillis,
};

/// What a job touches: a store that runs several transactions at once keeps those apart that would only meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// It writes nothing.
    Read,
    /// New claims; those of one key come one after another anyway.
    Claims {
        /// The resource, or the event where there is none.
        key: Vec<u8>,
    },
    /// Anything else.
    Rest,
}

impl Scope {
    fn of(claim: Option<&Claim>) -> Self {
        let key = claim.map(|claim| match claim.resource() {
            Some(resource) => resource.as_bytes().to_vec(),
            None => claim.event().as_str().as_bytes().to_vec(),
        });
        Self::Claims {
            key: key.unwrap_or_default(),
        }
    }
}

/// A store over ordered rows.
pub(crate) trait RowStore: Sealed + fmt::Debug + Send + Sync + 'static {
    /// Runs `job` in a transaction; its answer leaves when all that it rests on is durable. A store may run it more than
    /// once, and only the last run counts.
    fn run<T: Send + 'static>(
        &self,
        scope: Scope,
        job: impl Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync + 'static,
    ) -> StoreFuture<'_, T>;

    /// How far the ledger has come.
    fn standing(&self) -> StoreFuture<'_, Standing> {
        self.run(Scope::Read, |transaction| Ok(transaction.standing()))
    }

    /// The last number, once nothing with a lower one is under way any more. A store with one writer never has such.
    fn complete_upto(&self) -> StoreFuture<'_, ClaimId> {
        self.run(Scope::Read, |transaction| Ok(transaction.standing().last))
    }

    /// Rows that one step of an audit reads at the most.
    fn page_rows_max(&self) -> usize {
        PAGE_ROWS_MAX
    }

    fn health(&self) -> Health;

    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>>;

    fn close(&self) -> StoreFuture<'_, ()>;
}

impl<S: RowStore> Store for S {
    fn claim(&self, request: ClaimRequest) -> StoreFuture<'_, ClaimOutcome> {
        self.run(Scope::of(Some(&request.claim)), move |transaction| {
            transaction.forget_refusals(request.forget_before)?;
            transaction.claim(&request.claim, request.at)
        })
    }

    fn claim_each(&self, request: BatchRequest) -> StoreFuture<'_, Vec<ClaimOutcome>> {
        self.run(Scope::of(request.claims.first()), move |transaction| {
            transaction.forget_refusals(request.forget_before)?;
            let claims = request.claims.iter();
            claims.map(|claim| transaction.claim(claim, request.at)).collect()
        })
    }

    fn claim_all(&self, request: BatchRequest) -> StoreFuture<'_, BatchOutcome> {
        self.run(Scope::of(request.claims.first()), move |transaction| {
            transaction.forget_refusals(request.forget_before)?;
            transaction.claim_all(&request)
        })
    }

    fn reverse(&self, request: ReversalRequest) -> StoreFuture<'_, ReversalOutcome> {
        self.run(Scope::Rest, move |transaction| transaction.reverse(&request))
    }

    fn record(&self, player: PlayerId, event: RewardEventId) -> StoreFuture<'_, Option<ClaimRecord>> {
        self.run(Scope::Read, move |transaction| {
            let rows = transaction.rows();
            read_receipt(rows, player, &event)?
                .map(|receipt| join_record(rows, receipt))
                .transpose()
        })
    }

    fn find(&self, query: Query, after: Option<Cursor>, rows_max: usize) -> StoreFuture<'_, Records> {
        self.run(Scope::Read, move |transaction| {
            queries::find(transaction.rows(), &query, after.as_ref(), rows_max)
        })
    }

    fn fence(&self, resource: LeaseName) -> StoreFuture<'_, Option<FenceState>> {
        self.run(Scope::Read, move |transaction| {
            read_fence_state(transaction.rows(), &resource)
        })
    }

    fn reset_fence(&self, request: ResetRequest) -> StoreFuture<'_, FenceState> {
        self.run(Scope::Rest, move |transaction| transaction.reset_fence(&request))
    }

    fn lease_outbox(&self, request: LeaseRequest) -> StoreFuture<'_, LeasedRows> {
        self.run(Scope::Rest, move |transaction| transaction.lease_outbox(&request))
    }

    fn settle_outbox(&self, request: SettleRequest) -> StoreFuture<'_, Vec<Settled>> {
        self.run(Scope::Rest, move |transaction| {
            transaction.settle_outbox(&request)
        })
    }

    fn amend_outbox(&self, request: AmendRequest) -> StoreFuture<'_, Amended> {
        self.run(Scope::Rest, move |transaction| transaction.amend_outbox(&request))
    }

    fn deliveries(
        &self,
        query: OutboxQuery,
        after: Option<ClaimId>,
        rows_max: usize,
    ) -> StoreFuture<'_, Deliveries> {
        self.run(Scope::Read, move |transaction| {
            queries::deliveries(transaction.rows(), query, after, rows_max)
        })
    }

    fn start_payment(&self, start: PaymentStart, at: UnixMillis) -> StoreFuture<'_, PaymentOutcome> {
        self.run(Scope::Rest, move |transaction| {
            transaction.start_payment(&start, at)
        })
    }

    fn report_payment(&self, report: PaymentReport, at: UnixMillis) -> StoreFuture<'_, ReportOutcome> {
        self.run(Scope::Rest, move |transaction| {
            transaction.report_payment(&report, at)
        })
    }

    fn payments(&self, order: OrderId) -> StoreFuture<'_, Vec<PaymentAttempt>> {
        self.run(Scope::Read, move |transaction| {
            read_payments(transaction.rows(), &order)
        })
    }

    fn standing(&self) -> StoreFuture<'_, Standing> {
        RowStore::standing(self)
    }

    fn complete_upto(&self) -> StoreFuture<'_, ClaimId> {
        RowStore::complete_upto(self)
    }

    fn page(&self, table: Table, after: Option<Cursor>) -> StoreFuture<'_, Page> {
        let rows_max = self.page_rows_max();
        self.run(Scope::Read, move |transaction| {
            pages::page(transaction.rows(), table, after.as_ref(), rows_max)
        })
    }

    fn archive(&self, table: ArchiveTable, after: Option<Cursor>) -> StoreFuture<'_, ArchivePage> {
        self.run(Scope::Read, move |transaction| {
            archive(transaction.rows(), table, after.as_ref())
        })
    }

    fn restore(&self, rows: Vec<Archived>) -> StoreFuture<'_, Restored> {
        self.run(Scope::Rest, move |transaction| transaction.restore(&rows))
    }

    fn health(&self) -> Health {
        RowStore::health(self)
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>> {
        RowStore::ended(self)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        RowStore::close(self)
    }
}
