"""Our posts on each thread and the posts that show it, with the changes of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

from bot.domain.card import id_order
from bot.domain.post import Post, PostKey, Renewal, ThreadPosts
from bot.domain.thread import Record, ThreadId
from bot.memory.merge import later_post, newest_posts, slot_order


def outdated_posts(every: Collection[ThreadPosts], records: Mapping[ThreadId, Record]) -> Iterator[Renewal]:
    """Renewals of the posts that are no newer than the last change of a thread that they show."""
    written = {post.key: post.at for thread in every for post in thread.posts}
    for thread in every:
        record = records.get(thread.id)
        for key in thread.shown_by:
            if record and key in written and written[key] <= record.revised_at and not key.is_note:
                yield Renewal(*key, thread.id, record.revised_at)


class StagedPosts:
    """Our posts on each thread and the posts that show it: as ``read`` returns them, with a run's changes.

    Reads only on demand. Putting a post again, or one older than the stored one, has no effect.
    """

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, ThreadPosts]]) -> None:
        self._read = read
        self._posts: dict[ThreadId, dict[str, Post]] = {}
        self._shown: dict[ThreadId, dict[PostKey, bool]] = {}
        self._dropped: set[PostKey] = set()

    def lookup(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadPosts]:
        """The posts on these threads and those that show them, for threads that have any."""
        keys = list(dict.fromkeys(ids))
        stored = self._read(keys)
        current = {key: self._with_changes(stored.get(key, ThreadPosts(key))) for key in keys}
        return {key: thread for key, thread in current.items() if thread.posts or thread.shown_by}

    def put(self, posts: Iterable[Post]) -> list[tuple[Post, Post | None]]:
        """Replace the stored states of these posts. Returns each merged state with the one before."""
        new = list(posts)
        stored = self.lookup(post.id for post in new)
        before = {post.key: post for thread in stored.values() for post in thread.posts}
        merged: dict[PostKey, Post] = {}
        for post in new:
            merged[post.key] = later_post(post, merged.get(post.key, before.get(post.key)))
        changed = {key: post for key, post in merged.items() if post != before.get(key)}
        shown = {key: frozenset(before[key].shows) if key in before else frozenset() for key in changed}
        # Read together, as each read may cost an exchange.
        self._read({thread for key, post in changed.items() for thread in shown[key].symmetric_difference(post.shows)})
        for key, post in changed.items():
            self._posts.setdefault(post.id, {})[post.slot] = post
            self._dropped.discard(key)
            self._list(key, shown[key].difference(post.shows), is_shown=False)
            self._list(key, (thread for thread in post.shows if thread not in shown[key]), is_shown=True)
        for post_id in {key.thread for key in changed}:
            self._unlist_excess(stored.get(post_id, ThreadPosts(post_id)))
        return [(post, before.get(key)) for key, post in merged.items()]

    def drop(self, ids: Iterable[ThreadId], forgotten: Container[ThreadId] = ()) -> None:
        """Remove the posts on threads that are gone. Unless they are ``forgotten``, it is kept that there was a
        comment: if the thread comes back, it gets no second one."""
        for thread in self.lookup(ids).values():
            for post in thread.posts:
                self._list(post.key, post.shows, is_shown=False)
                if post.key.is_comment and post.id not in forgotten:
                    self._posts.setdefault(post.id, {})[post.slot] = post.showing(None)
                else:
                    self._dropped.add(post.key)

    def relist(self, every: Iterable[ThreadPosts]) -> None:
        """Rebuild the lists of the posts that show a thread from ``every`` thread's posts."""
        threads = list(every)
        for thread in threads:
            self._shown.setdefault(thread.id, {}).update(dict.fromkeys(thread.shown_by, False))
        for post in (post for thread in threads for post in thread.posts):
            self._list(post.key, post.shows, is_shown=True)

    def changes(self) -> dict[ThreadId, ThreadPosts]:
        """The posts of each thread on which a post or a list of posts changed."""
        touched = dict.fromkeys([*self._posts, *self._shown, *(key.thread for key in self._dropped)])
        return {key: ThreadPosts(key) for key in touched} | self.lookup(touched)

    def _unlist_excess(self, stored: ThreadPosts) -> None:
        """List nothing for notes that are too many to be kept."""
        posts = {post.slot: post for post in stored.posts} | self._posts[stored.id]
        kept = {post.slot for post in newest_posts(posts.values())}
        for post in posts.values():
            if post.slot not in kept:
                self._list(post.key, post.shows, is_shown=False)

    def _list(self, key: PostKey, threads: Iterable[ThreadId], *, is_shown: bool) -> None:
        for thread in threads:
            self._shown.setdefault(thread, {})[key] = is_shown

    def _with_changes(self, stored: ThreadPosts) -> ThreadPosts:
        posts = {post.slot: post for post in stored.posts} | self._posts.get(stored.id, {})
        kept = (post for post in posts.values() if post.key not in self._dropped)
        shown = dict.fromkeys(stored.shown_by, True) | self._shown.get(stored.id, {})
        keys = (key for key, is_shown in shown.items() if is_shown)
        in_order = sorted(keys, key=lambda key: (id_order(key.thread), slot_order(key.slot)))
        return ThreadPosts(stored.id, newest_posts(kept), tuple(in_order))
