public import MartletCore

/// Signs requests to other systems as Standard Webhooks specifies: HMAC-SHA-256 over `id.timestamp.body`.
public struct WebhookSigner: Sendable {
    /// The minimum and maximum size of a key in bytes, as Standard Webhooks recommends.
    public static let keyBytes = 24...64

    private static let prefix = Array("whsec_".utf8)
    private let key: Secret

    /// - Parameter text: `whsec_` and the key in base64, or the key in base64 alone.
    /// - Returns: `nil` unless it is base64 of 24 to 64 bytes.
    public init?(_ text: Secret) {
        let key = text.withBytes { bytes in
            let start = bytes.starts(with: WebhookSigner.prefix) ? WebhookSigner.prefix.count : 0
            return Base64.decode(bytes[start...], padding: .required)
        }
        guard let key, WebhookSigner.keyBytes.contains(key.count) else { return nil }
        self.key = Secret(key)
    }

    /// The headers of a request.
    /// - Parameters:
    ///   - id: the event's id, or a fresh one.
    ///   - now: when the request is sent; receivers reject old requests.
    ///   - body: the body as it is sent.
    public func headers(id: String, at now: UnixTime, body: [UInt8]) -> [(name: String, value: String)] {
        let signed = Array("\(id).\(now.seconds).".utf8) + body
        let signature = Base64.encode(HMACSHA256.authenticate(signed, key: key), padding: .required)
        return [
            ("webhook-id", id), ("webhook-timestamp", String(now.seconds)), ("webhook-signature", "v1,\(signature)"),
        ]
    }
}
