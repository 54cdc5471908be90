//! The group commit of a store: the log carries the generation of its table along with each record.

use crate::log::commit;
use crate::store::catalog::Generation;

pub(crate) type Commit = commit::Commit<Generation>;
pub(crate) type CommitState = commit::CommitState<Generation>;
pub(crate) type Guard<'a> = commit::Guard<'a, Generation>;
pub(crate) type Open = commit::Open<Generation>;
pub(crate) type Operation<'a> = commit::Operation<'a, Generation>;
pub(crate) type Sealed = commit::Sealed<Generation>;
pub(crate) type Turn<'a> = commit::Turn<'a, Generation>;
