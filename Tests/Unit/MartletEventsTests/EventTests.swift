import MartletJSON
import MartletTesting
import Testing

@testable import MartletEvents

@Suite struct EventPatternTests {
    @Test(arguments: [
        ("account.created", ["account.created"]),
        ("account.*", ["account.created", "account.deleted", "account.restored", "account.reclaimed"]),
        ("identity.*", ["identity.linked", "identity.unlinked", "identity.revoked", "identity.transferred"]),
        ("login.*", ["login.succeeded", "login.failed"]),
        (
            "*",
            [
                "account.created", "account.deleted", "account.restored", "account.reclaimed", "identity.linked",
                "identity.unlinked",
                "identity.revoked", "identity.transferred", "email.changed", "session.revoked",
            ]
        ),
    ])
    func `matches a type, a kind or everything`(text: String, types: [String]) throws {
        let pattern = try #require(EventPattern(text))
        #expect(EventType.all.filter(pattern.matches).map(\.rawValue) == types)
    }

    @Test func `matches types of its kind that a newer version recorded`() throws {
        let pattern = try #require(EventPattern("account.*"))
        #expect(pattern.matches(EventType(rawValue: "account.renamed")))
        #expect(!pattern.matches(EventType(rawValue: "accounts.renamed")))
    }

    @Test(arguments: [
        "", ".", "account", "account.", "account.create", "accounts.*", "*.created", "**", "account.**", ".*",
    ])
    func `is nil for what matches no type`(text: String) {
        #expect(EventPattern(text) == nil)
    }

    @Test func `lists every pattern`() {
        #expect(EventPattern.all.allSatisfy { EventPattern($0) != nil })
        #expect(EventPattern.all.contains("identity.*"))
    }
}

@Suite struct EventSubscriptionsTests {
    @Test func `names each webhook once, in the order of the configuration`() throws {
        let patterns = try ["account.created", "account.*", "identity.*"].map { try #require(EventPattern($0)) }
        let subscriptions = EventSubscriptions([
            .init(hook: "b", patterns: [patterns[0], patterns[1]]), .init(hook: "a", patterns: [patterns[2]]),
            .init(hook: "c", patterns: [patterns[1]]),
        ])
        #expect(subscriptions.hooks(for: .accountCreated) == ["b", "c"])
        #expect(subscriptions.hooks(for: .identityUnlinked) == ["a"])
        #expect(EventSubscriptions().hooks(for: .accountCreated).isEmpty)
    }
}

@Suite struct CloudEventTests {
    @Test func `is a CloudEvent in structured mode`() throws {
        let event = Event(
            id: "01ARYZ6S410000000000000000", type: .identityLinked, subject: "usr_1", time: 1_795_426_200_250,
            data: ["provider": "apple"])
        let text = String(decoding: event.cloudEvent(source: "https://auth.example.com"), as: UTF8.self)
        #expect(
            text == #"{"specversion":"1.0","id":"01ARYZ6S410000000000000000","source":"https://auth.example.com","#
                + #""type":"dev.martlet.identity.linked","subject":"usr_1","time":"2026-11-23T09:30:00.250Z","#
                + #""datacontenttype":"application/json","data":{"provider":"apple"}}"#)
    }
}
