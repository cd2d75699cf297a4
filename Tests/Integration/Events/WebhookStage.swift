import Foundation
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// A receiver of webhooks, a simulated Apple, and the configuration of gateways that call the receiver.
final class WebhookStage {
    static let key = [UInt8](repeating: 0x5A, count: 32)

    let receiver: ScriptedUpstream
    let apple: AppleFixture
    let folder: TemporaryFolder

    init(_ script: @escaping ScriptedUpstream.Script = { try $0.respond(204) }) throws {
        receiver = try ScriptedUpstream(script)
        apple = try AppleFixture()
        folder = try TemporaryFolder()
    }

    /// - Parameters:
    ///   - webhook: more keys of the webhook.
    ///   - hasWebhook: whether there is one at all.
    func configuration(_ webhook: String = "", hasWebhook: Bool = true) -> String {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: apple.provider(), routes: GatewayConfig.closed)
        config.more = "accounts: { url: \"sqlite:accounts.db\" }\n"
        if hasWebhook {
            let secret = "whsec_" + Base64.encode(WebhookStage.key, padding: .required)
            config.more +=
                "webhooks: [{ name: backend, url: \"\(receiver.url)/hook?a=b\", secret: \"\(secret)\", "
                + "events: [\"account.*\", identity.linked]\(webhook.isEmpty ? "" : ", ")\(webhook) }]\n"
        }
        return config.text
    }

    /// Starts a gateway on the shared folder, and so on the shared database.
    func gateway(_ webhook: String = "", hasWebhook: Bool = true) throws -> Gateway {
        try Gateway(configuration(webhook, hasWebhook: hasWebhook), in: folder)
    }

    /// Signs a user in and returns the account's subject.
    @discardableResult
    func login(_ number: Int, at gateway: Gateway) throws -> String {
        let token = try apple.token(subject: "001234.0123456789abcdef0123456789abcdef.\(1000 + number)")
        let body = Array(try JSONSerialization.data(withJSONObject: ["identity_token": token]))
        let response = try gateway.exchange(
            "POST", "/auth/login/apple", [("Content-Type", "application/json")], body: body)
        guard response.status == 200, let subject = response.member("subject") else {
            throw TestFailure("no login: \(response)")
        }
        return subject
    }

    /// The subjects of all requests, in order.
    var subjects: [String] { receiver.requests.compactMap { $0.member("subject") } }

    /// Two gateways on the shared folder: the first one delivers.
    func holderAndOther() throws -> [Gateway] {
        let first = try gateway()
        try waitUntil("the first one delivers") {
            try first.askAdmin("/metrics").text.contains("martlet_webhook_holder{webhook=\"backend\"} 1")
        }
        return [first, try gateway()]
    }

    /// Whether everything was delivered.
    func isEmpty() throws -> Bool {
        let listed = try events("list")
        guard listed.ending == .exited(0) else { throw TestFailure("\(listed)") }
        return listed.output.isEmpty
    }

    /// `martlet events` with the configuration of the folder.
    func events(_ arguments: String...) throws -> CommandResult {
        try run(
            try Executable.martlet(), ["events"] + arguments + ["--config", folder.file("config.yaml")])
    }
}

/// Checks a delivery's headers and signature.
func expectSigned(_ request: HTTPMessage, at location: SourceLocation = #_sourceLocation) {
    let (id, time) = (request["webhook-id"] ?? "", request["webhook-timestamp"] ?? "")
    let signed = Array("\(id).\(time).".utf8) + request.body
    let code = HMACSHA256.authenticate(signed, key: Secret(WebhookStage.key))
    #expect(
        request["webhook-signature"] == "v1," + Base64.encode(code, padding: .required), sourceLocation: location)
    #expect(request["Content-Type"] == "application/cloudevents+json", sourceLocation: location)
    #expect(request.member("id") == id && !id.isEmpty, sourceLocation: location)
    let age = Date().timeIntervalSince1970 - (Double(time) ?? 0)
    #expect((-1...60).contains(age), "signed \(age) s ago", sourceLocation: location)
}
