import MartletJSON
import Testing

@testable import MartletCommands

@Suite struct `The arguments of key commands` {
    private func arguments(_ words: [String]) throws -> KeyArguments {
        try KeyArguments(Options(words, KeyCommand.grammar))
    }

    private func creation(_ words: String...) throws -> KeyArguments.Creation? {
        guard case .create(let creation) = try arguments(["create"] + words).action else { return nil }
        return creation
    }

    @Test func `describe a new key`() throws {
        let plain = try #require(try creation("--subject", "billing"))
        #expect(plain.subject == "billing" && !plain.isAccount && plain.lifetime == nil)
        #expect(plain.claims.isEmpty && plain.scopes.isEmpty)
        let full = try #require(
            try creation(
                "--subject", "usr_1", "--account", "--claims", "role=partner", "--claims", "teams=a,b", "--scope",
                "a,b",
                "--scope", "b,c", "--expires", "90d"))
        #expect(full.isAccount && full.claims == ["role": "partner", "teams": ["a", "b"]])
        #expect(full.scopes == ["a", "b", "c"] && full.lifetime == .seconds(90 * 86_400))
    }

    @Test func `name a key, a page or a grace period`() throws {
        guard case .revoke("id") = try arguments(["revoke", "id"]).action else { throw Mismatch() }
        guard case .rotate("id", grace: .zero) = try arguments(["rotate", "id"]).action else { throw Mismatch() }
        guard case .rotate("id", grace: .seconds(3600)) = try arguments(["rotate", "id", "--grace", "1h"]).action else {
            throw Mismatch()
        }
        guard case .list(after: "", limit: nil) = try arguments(["list"]).action else { throw Mismatch() }
        guard case .list(after: "x", limit: 3) = try arguments(["list", "--after", "x", "--limit", "3"]).action else {
            throw Mismatch()
        }
    }

    private struct Mismatch: Error {}

    @Test(arguments: [
        [], ["make"], ["create"], ["create", "--subject", " a"], ["create", "--subject", "a", "--claims", "key_id=x"],
        ["create", "--subject", "a", "--claims", "iss=x"], ["create", "--subject", "a", "--claims", "x:=null"],
        ["create", "--subject", "a", "--claims", "x=\(String(repeating: "y", count: 1025))"],
        ["create", "--subject", "a", "--scope", ""], ["create", "--subject", "a", "--scope", "a b"],
        ["create", "--subject", "a", "--expires", "999ms"], ["create", "--subject", "a", "--expires", "3651d"],
        ["rotate", "id", "--grace", "-1s"], ["rotate", "id", "--subject", "a"], ["list", "--limit", "none"],
        ["revoke"], ["revoke", "id", "--expires", "1d"],
    ]) func `that fit together badly are a usage error`(words: [String]) {
        #expect(throws: Options.UsageError.self) { try arguments(words) }
    }

    @Test func `have limits in all`() throws {
        let many = (0..<33).flatMap { ["--claims", "c\($0)=x"] }
        #expect(throws: Options.UsageError.self) { try arguments(["create", "--subject", "a"] + many) }
        let scopes = (0..<65).map { "s\($0)" }.joined(separator: ",")
        #expect(throws: Options.UsageError.self) { try arguments(["create", "--subject", "a", "--scope", scopes]) }
    }
}
