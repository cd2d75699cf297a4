import Foundation
import MartletTesting
import Testing

/// Gateways with API keys, an upstream that records requests, and `martlet key` over their configuration.
struct KeyStage {
    let gateways: [Gateway]
    let upstream: ScriptedUpstream

    var gateway: Gateway { gateways[0] }

    static let routes = """
        - name: closed
          match: { path: /** }
          auth: { providers: [partners] }
          upstream: api
          headers:
            set:
              X-Auth-Subject: { attribute: subject }
              X-Auth-Provider: { attribute: provider }
              X-Role: { claim: role }
              X-Scope: { claim: scope, join: " " }
              X-Key: { claim: key_id }
        """

    /// - Parameters:
    ///   - accounts: the URL of the account store; `nil` for a file of each stage.
    ///   - count: how many gateways share the stores.
    ///   - more: further keys of the provider.
    ///   - blocks: further blocks of the configuration.
    ///   - providers: further providers.
    static func run(
        accounts: String? = nil, gateways count: Int = 1, more: String = "", blocks: String = "",
        providers: String = "", _ body: (KeyStage) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let shared = try TemporaryFolder()
        var configuration = GatewayConfig(
            endpoints: [upstream.url], providers: "partners:\n  kind: api_key\n\(more)\(providers)", routes: routes)
        let url = accounts ?? "sqlite:\(shared.file("accounts.db"))"
        configuration.more = "accounts: { url: \"\(url)\" }\n" + blocks
        var gateways: [Gateway] = []
        for _ in 0..<count { gateways.append(try Gateway(configuration.text)) }
        do {
            try body(KeyStage(gateways: gateways, upstream: upstream))
        } catch {
            throw TestFailure("\(error)\n--- the gateways wrote:\n\(gateways.map { $0.everything.suffix(4000) })")
        }
        for gateway in gateways { try gateway.stop() }
    }

    func command(_ arguments: [String]) throws -> CommandResult {
        try MartletTesting.run(
            try Executable.martlet(), arguments + ["--config", gateway.folder.file("config.yaml")])
    }

    func key(_ arguments: String...) throws -> CommandResult { try command(["key"] + arguments) }

    /// Makes a key.
    func create(_ arguments: String...) throws -> String {
        let result = try command(["key", "create"] + arguments)
        guard result.ending == .exited(0) else { throw TestFailure("\(result)") }
        return result.output.trimmingCharacters(in: .newlines)
    }

    /// The status of a request with a key.
    func status(_ key: String, at index: Int = 0) throws -> Int {
        try gateways[index].get("/v1", bearer(key)).status
    }

    /// Waits until a gateway has logged a reason: the line follows the response.
    func waitForReason(_ reason: String, at index: Int = 0) throws {
        try waitUntil("\(reason) is logged") { gateways[index].everything.contains(reason) }
    }
}

/// The id in a key.
func keyID(_ key: String) -> String { String(key.dropFirst(4).prefix(16)) }
