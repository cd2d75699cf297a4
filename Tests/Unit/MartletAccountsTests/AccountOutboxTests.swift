import MartletAccounts
import MartletCore
import MartletEvents
import MartletJSON
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

private func subscriptions(_ hooks: (String, String)...) throws -> EventSubscriptions {
    EventSubscriptions(
        try hooks.map { name, pattern in
            EventSubscriptions.Subscriber(hook: name, patterns: [try #require(EventPattern(pattern))])
        })
}

extension OutboxStoring {
    /// Everything that is due, whenever.
    fileprivate func due(_ hook: String, at now: Int64 = .max, limit: Int = 100) async throws -> [DueDelivery] {
        try await dueDeliveries(of: hook, at: now, limit: limit)
    }

    fileprivate func all(
        to hook: String? = nil, in state: OutboxEntry.State? = nil, limit: Int = 100
    ) async throws -> [OutboxEntry] {
        var (entries, start): ([OutboxEntry], Int64?) = ([], 0)
        while let position = start {
            let page = try await self.entries(to: hook, in: state, from: position, limit: limit)
            entries += page.entries
            start = page.next
        }
        return entries
    }
}

@Suite(.timeLimit(.minutes(2))) struct AccountOutboxTests {
    @Test func `records changes of accounts for the webhooks that get them`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("all", "*"), ("linked", "identity.linked")))
            let before = Clock.system.unixMilliseconds
            let ada = try await store.signIn(identity("apple", "001"))
            _ = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            try await store.link(identity("wechat", "u:1", "o:1"), to: ada)
            _ = try await store.unlink(provider: "wechat", from: ada.subject)
            let entries = try await store.all(to: "all")
            #expect(entries.map(\.event.type) == [.accountCreated, .identityLinked, .identityUnlinked])
            let data: [JSONObject] = [["provider": "apple"], ["provider": "wechat"], ["provider": "wechat"]]
            #expect(entries.map(\.event.data) == data)
            #expect(entries.allSatisfy { $0.event.subject == ada.subject && $0.state == .open && $0.attempts == 0 })
            #expect(entries.allSatisfy { ($0.event.time - before) < 60_000 && $0.event.time >= before })
            #expect(Set(entries.map(\.event.id)).count == 3)
            let linked = try await store.all(to: "linked")
            #expect(linked.map(\.event) == [entries[1].event])
        }
    }

    @Test func `records another address of an identity, once and without the address`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("all", "email.*")))
            let ada = try await store.signIn(identity("apple", "001"))
            func logIn(_ address: String?, at seconds: Int64) async throws {
                try await store.noteLogin(
                    of: ada.subject, with: "apple", email: address.flatMap(EmailAddress.init),
                    at: UnixTime(seconds: seconds))
            }
            try await logIn(nil, at: 10)
            try await logIn("ada@example.com", at: 11)
            try await logIn("Ada@Example.com", at: 12)
            try await logIn(nil, at: 13)
            #expect(try await store.all().isEmpty)
            try await logIn("ada@example.org", at: 14)
            try await logIn("ada@example.org", at: 15)
            // A login that was recorded late.
            try await logIn("ada@example.com", at: 9)
            let entries = try await store.all()
            #expect(entries.map(\.event.type) == [.emailChanged])
            #expect(entries.map(\.event.data) == [["provider": "apple"]])
            #expect(entries.map(\.event.subject) == [ada.subject])
            #expect(
                try await store.linkedIdentities(of: ada.subject).map(\.lastLoginAt) == [UnixTime(seconds: 15)])
        }
    }

    @Test func `records nothing that no webhook gets, and nothing of a change that failed`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            store.subscribe(try subscriptions(("all", "*")))
            let eve = try await store.signIn(identity("wechat", "u:1"))
            #expect(await code { try await store.link(identity("wechat", "u:1"), to: ada) } == .accountsBoundElsewhere)
            #expect(
                await code { _ = try await store.unlink(provider: "wechat", from: eve.subject) }
                    == .accountsLastIdentity)
            #expect(await code { try await store.link(identity("apple", "2"), to: ada) } == .accountsProviderTaken)
            let entries = try await store.all()
            #expect(entries.map(\.event.subject) == [eve.subject])
            store.subscribe(EventSubscriptions())
            _ = try await store.signIn(identity("apple", "003"))
            #expect(try await store.all().count == 1)
        }
    }

    @Test func `is due one at a time for each subject, in order`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("h", "*")))
            let ada = try await store.signIn(identity("apple", "001"))
            let eve = try await store.signIn(identity("apple", "002"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            let first = try await store.due("h")
            #expect(first.map(\.event.subject) == [ada.subject, eve.subject])
            #expect(try await store.due("other").isEmpty)
            #expect(try await store.due("h", limit: 1).map(\.event.subject) == [ada.subject])
            #expect(try await store.due("h", at: 0).isEmpty)
            try await store.noteDelivered([first[0]])
            let second = try await store.due("h")
            #expect(second.map(\.event.type) == [.accountCreated, .identityLinked])
            try await store.noteDelivered(second)
            #expect(try await store.due("h").isEmpty)
            #expect(try await store.all().isEmpty)
        }
    }

    @Test func `delays a subject's events together until the retry`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("h", "*")))
            let ada = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            let now = Clock.system.unixMilliseconds
            let first = try #require(try await store.due("h").first)
            try await store.noteFailed(first, to: "h", retryAt: now + 50_000, reason: "status 503\0")
            #expect(try await store.due("h", at: now + 49_999).isEmpty)
            try await store.link(identity("password", "ada"), to: ada)
            #expect(try await store.due("h", at: now + 49_999).isEmpty)
            let again = try await store.due("h", at: now + 50_000)
            #expect(again.map(\.number) == [first.number] && again.map(\.attempts) == [1])
            let entries = try await store.all()
            #expect(entries.map(\.error) == ["status 503", "", ""] && entries.map(\.attempts) == [1, 0, 0])
            let backlog = try await store.backlog(of: "h")
            #expect(backlog.open == 3 && backlog.dead == 0 && backlog.oldest == first.event.time)
            #expect(try await store.backlog(of: "other") == OutboxBacklog())
        }
    }

    @Test func `a dead event blocks nothing and is sent again on request`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("h", "*")))
            let ada = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            let first = try #require(try await store.due("h").first)
            try await store.noteDead(first, reason: "status 410")
            #expect(try await store.due("h").map(\.event.type) == [.identityLinked])
            let dead = try await store.all(in: .dead)
            #expect(dead.map(\.event.id) == [first.event.id] && dead[0].error == "status 410" && dead[0].attempts == 1)
            #expect(try await store.all(in: .open).map(\.event.type) == [.identityLinked])
            let backlog = try await store.backlog(of: "h")
            #expect(backlog.open == 1 && backlog.dead == 1)
            let second = try #require(try await store.due("h").first)
            try await store.noteFailed(second, to: "h", retryAt: .max, reason: "status 503")
            #expect(try await store.resend(first.event.id, at: 7) == ["h"])
            #expect(try await store.all().map(\.dueAt) == [7, 7])
            #expect(try await store.due("h").map(\.number) == [first.number])
            #expect(try await store.all(in: .dead).isEmpty)
            for id in ["", "01ARYZ6S410000000000000000", "a\0b"] {
                #expect(try await store.resend(id, at: 7).isEmpty)
            }
        }
    }

    @Test func `keeps an event until every webhook has it`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("a", "*"), ("b", "account.*")))
            _ = try await store.signIn(identity("apple", "001"))
            let first = try #require(try await store.due("a").first)
            try await store.noteDelivered([first])
            let second = try #require(try await store.due("b").first)
            #expect(second.event == first.event)
            try await store.noteDelivered([second])
            #expect(try await store.trim(to: 0) == 0)
        }
    }

    @Test func `is listed in pages`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("a", "*"), ("b", "*")))
            for number in 0..<5 { _ = try await store.signIn(identity("apple", "\(number)")) }
            for limit in [1, 3, 10, 11] {
                let entries = try await store.all(limit: limit)
                #expect(entries.count == 10 && Set(entries.map(\.event.id)).count == 5)
                #expect(try await store.all(to: "b", limit: limit).count == 5)
            }
        }
    }

    @Test func `removes the oldest events beyond its bound`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("h", "*")))
            for number in 0..<6 { _ = try await store.signIn(identity("apple", "\(number)")) }
            let before = try await store.all().map(\.event.id)
            #expect(try await store.trim(to: 6) == 0)
            #expect(try await store.trim(to: 4) == 2)
            let after = try await store.all().map(\.event.id)
            #expect(after.count == 4 && Set(after).isSubset(of: before))
        }
    }

    @Test func `drops old deliveries to webhooks that are neither configured here nor delivered to elsewhere`()
        async throws
    {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(try subscriptions(("kept", "*"), ("old", "*"), ("older", "*"), ("new", "*")))
            for number in 0..<3 { _ = try await store.signIn(identity("apple", "\(number)")) }
            let dead = try #require(try await store.due("old").first)
            try await store.noteDead(dead, reason: "status 410")
            let lease = WebhookDeliverer.leaseName(of: "new")
            #expect(try await store.acquireLease(lease, owner: "one", for: .seconds(60)))
            let expired = WebhookDeliverer.leaseName(of: "older")
            #expect(try await store.acquireLease(expired, owner: "one", for: .zero))
            let times = try await store.all(to: "old").map(\.event.time)
            let (first, last) = (try #require(times.min()), try #require(times.max()))
            #expect(try await store.dropDeliveries(exceptTo: ["kept"], before: first).isEmpty)
            #expect(
                try await store.dropDeliveries(exceptTo: ["kept"], before: last + 1) == ["old": 3, "older": 3])
            #expect(try await store.dropDeliveries(exceptTo: ["kept"], before: .max).isEmpty)
            #expect(try await store.all().map(\.hook).sorted() == ["kept", "kept", "kept", "new", "new", "new"])
            try await store.releaseLease(lease, owner: "one")
            #expect(try await store.dropDeliveries(exceptTo: ["kept"], before: .max) == ["new": 3])
            #expect(try await store.due("kept").count == 3)
            #expect(try await store.dropDeliveries(exceptTo: [], before: .max) == ["kept": 3])
            #expect(try await store.trim(to: 0) == 0, "no event is left without a delivery")
        }
    }

    @Test func `of a webhook that confirms and one whose deliveries are dropped, no event is left`() async throws {
        try await withStores(2) { stores in
            stores[0].subscribe(try subscriptions(("kept", "*"), ("old", "*")))
            for number in 0..<40 { _ = try await stores[0].signIn(identity("apple", "\(number)")) }
            let due = try await stores[0].due("kept")
            async let dropped = stores[1].dropDeliveries(exceptTo: ["kept"], before: .max)
            try await stores[0].noteDelivered(due)
            #expect(try await dropped == ["old": 40])
            #expect(try await stores[0].trim(to: 0) == 0)
        }
    }

    @Test func `a lease has one holder, who can extend and release it`() async throws {
        try await withStores(2) { stores in
            #expect(try await stores[0].acquireLease("l", owner: "one", for: .seconds(60)))
            #expect(try await !stores[1].acquireLease("l", owner: "two", for: .seconds(60)))
            #expect(try await stores[1].acquireLease("other", owner: "two", for: .seconds(60)))
            #expect(try await stores[0].acquireLease("l", owner: "one", for: .zero))
            #expect(try await stores[1].acquireLease("l", owner: "two", for: .seconds(60)))
            try await stores[0].releaseLease("l", owner: "one")
            #expect(try await !stores[0].acquireLease("l", owner: "one", for: .seconds(60)))
            try await stores[1].releaseLease("l", owner: "two")
            #expect(try await stores[0].acquireLease("l", owner: "one", for: .seconds(60)))
        }
    }

    @Test func `of many owners one gets a lease`() async throws {
        try await withStores(3) { stores in
            let held = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<30 {
                    group.addTask {
                        try await stores[number % 3].acquireLease("l", owner: "\(number)", for: .seconds(60))
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(held == 1)
        }
    }

    @Test func `wakes its observers after a change`() async throws {
        try await withStores { stores in
            let wakeup = Wakeup()
            stores[0].observers.add(wakeup)
            _ = try await stores[0].signIn(identity("apple", "001"))
            await wakeup.wait(atMost: .seconds(600))
            stores[0].observers.remove(wakeup)
        }
    }
}
