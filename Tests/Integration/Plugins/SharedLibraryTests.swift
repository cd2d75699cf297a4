import Foundation
import MartletTesting
import Testing

/// Plugins in shared libraries, written by `martlet plugin new`.
@Suite struct `Shared libraries` {
    /// One library of a kind of its own, and one of a kind that exists; built once.
    static let built = Result {
        let folder = try TemporaryFolder()
        _ = try PluginStage.build("Line", into: folder, testing: true)
        _ = try PluginStage.build("Taken", into: folder, kind: "apple")
        return folder
    }

    static func config(plugins: String, listen: String = "- address: 127.0.0.1:0") -> String {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: plugins.isEmpty ? "" : "line: { kind: line, subject: alice, token: secret }",
            routes: """
                - { name: open, match: { path: /open }, auth: none, upstream: api }
                - { name: all, match: { path: /** }, auth: \(plugins.isEmpty ? "none" : "{ providers: [line] }"), upstream: api }
                """)
        config.listen = listen
        config.more = "plugins: [\(plugins)]\n"
        return config.text
    }

    /// The folder of a gateway with the libraries.
    static func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in ["libLine.so", "libTaken.so"] {
            try PluginStage.command(["cp", "-p", try built.get().file(name), folder.path])
        }
        return folder
    }

    @Test func `serve requests`() throws {
        let folder = try Self.folder()
        let gateway = try Gateway(Self.config(plugins: "{ path: libLine.so }"), in: folder)
        let served = try gateway.get("/x", bearer("line_secret"))
        #expect(served.status == 200 && served.text.contains(#""x-auth-subject":"line:alice""#), "\(served)")
        #expect(try gateway.get("/x", bearer("line_other")).status == 401)
        try waitUntil("line.wrong_token is logged") { gateway.everything.contains("line.wrong_token") }
        try gateway.stop()
    }

    /// The partner of the examples; built once.
    static let partner = Result {
        let folder = try TemporaryFolder()
        _ = try PluginStage.build(
            "SignedPartner", into: folder, source: PluginStage.root + "/Examples/Plugins/SignedPartner")
        return folder
    }

    /// A new folder with the library of the partner.
    static func partnerFolder() throws -> (folder: TemporaryFolder, library: String) {
        let folder = try TemporaryFolder()
        try PluginStage.command(["cp", "-p", try partner.get().file("libSignedPartner.so"), folder.path])
        return (folder, "libSignedPartner.so")
    }

    @Test func `may be those of the examples`() throws {
        let (folder, library) = try Self.partnerFolder()
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: "acme: { kind: signed_partner, subject: acme, secret: s3cret }",
            routes: "- { name: all, match: { path: /** }, auth: { providers: [acme] }, upstream: api }")
        config.more = "plugins: [{ path: \(library) }]\n"
        let gateway = try Gateway(config.text, in: folder)
        func get(_ path: String, signedFor signed: String) throws -> HTTPMessage {
            let time = unixNow()
            let code = hmacSHA256(key: Array("s3cret".utf8), Array("\(time) GET \(signed)".utf8))
            let digits = code.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            return try gateway.get(path, [("X-Partner-Signature", "\(time) \(digits)")])
        }
        let served = try get("/x", signedFor: "/x")
        #expect(served.status == 200 && served.text.contains(#""x-auth-subject":"acme:acme""#), "\(served)")
        #expect(try get("/y", signedFor: "/x").status == 401)
        try waitUntil("signed_partner.bad_signature is logged") {
            gateway.everything.contains("signed_partner.bad_signature")
        }
        // A library's calls are kept apart by default.
        #expect(try gateway.askAdmin("/metrics").text.contains(#"martlet_bulkhead_calls{provider="acme""#))
        try gateway.stop()
    }

    @Test func `are in the schema for editors`() throws {
        let folder = try Self.folder()
        func schema(_ arguments: [String]) throws -> CommandResult {
            try run(try Executable.martlet(), ["schema"] + arguments)
        }
        // In the sorted list of kinds: `line` alone is also a preset of OpenID Connect.
        let kind = #""http","line","mtls""#
        let (plain, whole) = (try schema([]), try schema(["--plugin", folder.file("libLine.so")]))
        #expect(plain.ending == .exited(0) && !plain.output.contains(kind))
        #expect(whole.ending == .exited(0) && whole.output.contains(kind), "\(whole.errorOutput)")
        let missing = try schema(["--plugin", folder.file("none.so")])
        #expect(missing.ending == .exited(78) && missing.errorOutput.contains("[plugin.file_unreadable]"))
        #expect(missing.output.isEmpty)
    }

    @Test func `validate their blocks like any provider`() throws {
        let folder = try Self.folder()
        let text = Self.config(plugins: "{ path: libLine.so }").replacing("subject: alice", with: "subjekt: alice")
        let result = try run(
            try Executable.martlet(), ["check", "--config", try folder.write(text, to: "config.yaml")])
        #expect(result.ending == .exited(78) && result.errorOutput.contains("did you mean 'subject'?"), "\(result)")
    }

    @Test func `may not bring a kind that exists`() throws {
        let folder = try Self.folder()
        for plugins in ["{ path: libTaken.so }", "{ path: libLine.so }, { path: libLine.so }"] {
            let path = try folder.write(Self.config(plugins: plugins), to: "config.yaml")
            let result = try run(try Executable.martlet(), ["check", "--config", path])
            #expect(result.ending == .exited(78) && result.errorOutput.contains("[plugin.kind_exists]"), "\(result)")
            #expect(!result.errorOutput.contains("config.unknown_kind"), "\(result)")
        }
    }

    @Test func `are warned of in a directory that others may write to`() throws {
        let folder = try Self.folder()
        try PluginStage.command(["chmod", "777", folder.path])
        let path = try folder.write(Self.config(plugins: "{ path: libLine.so }"), to: "config.yaml")
        let lax = try run(try Executable.martlet(), ["check", "--config", path])
        #expect(lax.ending == .exited(0), "\(lax)")
        #expect(lax.errorOutput.contains(": warning: ") && lax.errorOutput.contains("[plugin.directory_writable]"))
        #expect(try run(try Executable.martlet(), ["check", "--strict", "--config", path]).ending == .exited(78))
    }

    @Test func `join at a reload, and stay as they were loaded`() throws {
        let folder = try Self.folder()
        let listen = "- address: 127.0.0.1:\(try refusedPort())"
        let gateway = try Gateway(Self.config(plugins: "", listen: listen), in: folder)
        func reload(_ plugins: String, until event: String, _ text: String) throws {
            let before = gateway.log.count
            try gateway.reload(Self.config(plugins: plugins, listen: listen))
            do {
                try waitUntil("the reload") {
                    gateway.log.dropFirst(before).contains { $0.text.contains(event) && $0.text.contains(text) }
                }
            } catch {
                throw TestFailure("\(event) \(text): \(error)\n\(gateway.everything.suffix(4000))")
            }
        }
        try reload("{ path: libLine.so }", until: "configuration reloaded", "routes")
        #expect(try gateway.get("/x", bearer("line_secret")).status == 200)
        // Another file at the same path.
        try PluginStage.command(["cp", folder.file("libTaken.so"), folder.file("new.so")])
        try PluginStage.command(["mv", folder.file("new.so"), folder.file("libLine.so")])
        try reload("{ path: libLine.so }", until: "configuration warning", "SIGUSR2")
        #expect(try gateway.get("/x", bearer("line_secret")).status == 200)
        // A bad one changes nothing.
        try reload("{ path: libLine.so }, { path: none.so }", until: "configuration error", "plugin.file_unreadable")
        #expect(try gateway.get("/x", bearer("line_secret")).status == 200)
        // Without it, and with it again: it is still in the process.
        try reload("", until: "configuration reloaded", "routes")
        #expect(try gateway.get("/x").status == 200)
        try reload("{ path: libLine.so }", until: "configuration reloaded", "routes")
        #expect(try gateway.get("/x").status == 401)
        try gateway.stop()
    }

    @Test func `begin with a package that does not touch what is there`() throws {
        let folder = try TemporaryFolder()
        try PluginStage.command(["mkdir", folder.file("Line")])
        func new(_ words: String...) throws -> CommandResult {
            try run("/usr/bin/env", ["-C", folder.path, try Executable.martlet(), "plugin", "new"] + words)
        }
        let api = try PluginStage.apiFolder()
        let result = try new("Line", "--api", api)
        #expect(result.ending == .exited(78) && result.errorOutput.contains("it exists"), "\(result)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("Line")).isEmpty)
        for name in ["line", "Li ne", "../Line", "", "Ünder", "1Line", "MartletCore"] {
            #expect(try new(name, "--api", api).ending == .exited(64), "\(name)")
        }
        #expect(try new("Other", "--api", folder.path).ending == .exited(78))
        #expect(try new("PartnerKey", "--api", api).ending == .exited(0))
        let source = folder.file("PartnerKey/Sources/PartnerKey/PartnerKeyProvider.swift")
        #expect(try String(contentsOfFile: source, encoding: .utf8).contains("\"partner_key\""))
    }
}
