import Foundation
import MartletConfig
import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import APIKeyProvider

@Suite struct `A keys file` {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var path: String { folder.file("keys.jsonl") }
    private var yaml: [String] { ["keys_file: \(path)"] }

    private func diagnostics(_ yaml: [String]) -> [String] {
        var diagnostics = Diagnostics()
        _ = Bench.configuration(yaml, into: &diagnostics)
        return diagnostics.all.map { "\($0)" }
    }

    private func mode() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require((attributes[.posixPermissions] as? NSNumber)?.intValue)
    }

    private func write(_ text: String, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    @Test func `has the keys that a command writes, without an account store`() async throws {
        let command = try Bench(yaml, hasAccounts: false)
        let (record, key) = try await command.issue()
        #expect(try mode() == 0o600)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains(record.id) && !text.contains(String(key.dropFirst(20).prefix(64))))
        let gateway = try Bench(yaml, hasAccounts: false, time: command.time)
        #expect(gateway.local(key) == "billing")
        #expect(try await gateway.identity(key).reusableUntil == gateway.time.now.advanced(bySeconds: 60))
        #expect(!gateway.provider.storesKeysInAccounts && gateway.provider.health.detail.contains("1 keys"))
        // Nothing else is left in the folder but the file of the lock.
        #expect(
            Set(try FileManager.default.contentsOfDirectory(atPath: folder.file("")))
                .isSuperset(of: ["keys.jsonl", "keys.jsonl.lock"]))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.file("")).allSatisfy { !$0.hasSuffix(".tmp") })
    }

    @Test func `is read again when it has changed, and decisions about changed keys are made again`() async throws {
        let command = try Bench(yaml)
        let (record, key) = try await command.issue()
        let (_, other) = try await command.issue("shipping")
        let gateway = try Bench(yaml, time: command.time)
        await gateway.provider.follow()
        #expect(gateway.local(key) == "billing" && gateway.invalidated.value.isEmpty)
        _ = try await command.provider.keys.revoke(record.id, at: command.time.now)
        await gateway.provider.follow()
        #expect(gateway.local(key) == "api_key.revoked" && gateway.local(other) == "shipping")
        #expect(gateway.invalidated.value == ["partners:billing"])
        #expect(gateway.log.texts.last == "info keys file reloaded file=\(path) keys=2 changed=1")
        #expect(try await command.provider.rotate(record.id, grace: .zero) == nil)
    }

    @Test func `that breaks leaves the keys before in use`() async throws {
        let command = try Bench(yaml)
        let (_, key) = try await command.issue()
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let gateway = try Bench(yaml, time: command.time)
        try write(text + "{\n")
        await gateway.provider.follow()
        await gateway.provider.follow()
        #expect(gateway.local(key) == "billing" && gateway.provider.health.state == .degraded)
        let line = "warning keys file unusable, keeping the previous keys file=\(path) reason=line 2: not a JSON object"
        #expect(gateway.log.lines.count == 1 && gateway.log.texts[0].hasPrefix(line))
        // Commands do not overwrite what they cannot read.
        await #expect { try await command.issue() } throws: { ($0 as? StoreError)?.code == "api_key.file_unusable" }
        try write(text, mode: 0o640)
        await gateway.provider.follow()
        #expect(gateway.log.texts.last?.contains("others than its owner") == true)
        try FileManager.default.removeItem(atPath: path)
        await gateway.provider.follow()
        #expect(gateway.local(key) == "billing")
        try write(text)
        await gateway.provider.follow()
        #expect(gateway.provider.health.state == .ready)
    }

    @Test func `that is unusable at the start is an error with its position`() throws {
        #expect(diagnostics(yaml).contains { $0.contains("there is no") && $0.contains("warning") })
        let nowhere = diagnostics(["keys_file: \(folder.file("none/keys"))"])
        #expect(nowhere.contains { $0.contains("config.file_unwritable") && $0.contains("its folder does not exist") })
        try write("\n{")
        #expect(diagnostics(yaml).contains { $0.contains("config.yaml:1:12") && $0.contains("line 2") })
        try write("", mode: 0o644)
        #expect(diagnostics(yaml).contains { $0.contains("config.yaml:1:12") && $0.contains("chmod 600") })
        try write("")
        #expect(diagnostics(yaml).isEmpty)
        #expect(diagnostics(["keys_file: \(folder.file(""))"]).contains { $0.contains("regular file") })
    }

    @Test func `loses nothing of many writers`() async throws {
        let yaml = yaml
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    let bench = try Bench(yaml)
                    for index in 0..<5 { _ = try await bench.issue("w\(writer)-\(index)") }
                }
            }
            try await group.waitForAll()
        }
        let keys = try await Bench(yaml).provider.keys.keys(after: "", limit: 100)
        #expect(Set(keys.map(\.subject)).count == 40)
    }

    @Test func `stays behind its symbolic link`() async throws {
        let link = folder.file("link.jsonl")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "keys.jsonl")
        try write("")
        let bench = try Bench(["keys_file: \(link)"])
        _ = try await bench.issue()
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "keys.jsonl")
        #expect(try await Bench(yaml).provider.keys.keys(after: "", limit: 9).count == 1)
    }

    @Test func `lists by id, page by page`() async throws {
        let bench = try Bench(yaml)
        for _ in 0..<5 { _ = try await bench.issue() }
        let first = try await bench.provider.keys.keys(after: "", limit: 3)
        let rest = try await bench.provider.keys.keys(after: first[2].id, limit: 3)
        #expect((first + rest).map(\.id) == (first + rest).map(\.id).sorted() && rest.count == 2)
    }

    @Test func `has no accounts without an account store`() async throws {
        let bench = try Bench(yaml, hasAccounts: false)
        let (_, key) = try await bench.issue("usr_1", isAccount: true)
        _ = bench.provider.health
        await bench.provider.follow()
        #expect(bench.local(key) == "api_key.no_accounts")
    }
}
