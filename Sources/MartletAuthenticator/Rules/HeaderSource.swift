internal import MartletProvider

/// A header that is a credential for some providers.
package struct HeaderSource: Sendable, Equatable {
    /// The most headers of one configuration: a decision's scope has eight bits for them.
    package static let limit = 256

    /// In lower case.
    package let name: [UInt8]
    /// The providers that verify it, by their indices.
    private(set) var providers: [Int32]

    /// The headers of all providers; a name is one of them, however it is spelled.
    static func all(of providers: [ProviderHandle]) -> [HeaderSource] {
        var sources: [HeaderSource] = []
        for (index, provider) in providers.enumerated() {
            for case .some(let name) in provider.accepts.map(\.headerName) {
                let name = name.utf8.map(lowerCase)
                if let known = sources.firstIndex(where: { $0.name == name }) {
                    sources[known].providers.append(Int32(index))
                } else if sources.count < limit {
                    sources.append(HeaderSource(name: name, providers: [Int32(index)]))
                }
            }
        }
        return sources
    }

    private var text: String { String(decoding: name, as: UTF8.self) }

    /// Whether it is a signature of the request, which an upstream may check as well where it is no credential.
    var isSignature: Bool { text == CredentialSource.signatureInput }

    /// The fields that the upstream does not get where it is a credential.
    var fieldNames: [String] { isSignature ? [text, "signature"] : [text] }

    /// The first of some providers that verifies it.
    func provider(among candidates: [Int32]) -> Int32? { candidates.first { providers.contains($0) } }

    @inline(__always)
    static func lowerCase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

extension CredentialSource {
    /// In lower case.
    fileprivate static let signatureInput = "signature-input"

    /// The header whose value is the credential; `nil` for those that are elsewhere.
    fileprivate var headerName: String? {
        switch self {
        case .header(let name): name
        case .messageSignature: Self.signatureInput
        case .bearerJWT, .bearerPrefix, .basic, .clientCertificate: nil
        }
    }
}
