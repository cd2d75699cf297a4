internal import MartletCore

/// Selects certificates by SNI: exact names before wildcards, the first certificate if none matches.
///
/// A wildcard stands for exactly one label. Of several certificates with one name, the first of each key type is used:
/// a client that supports ECDSA gets that one, others the RSA one.
struct CertificateSelector: Sendable {
    /// The names and the key type of a certificate.
    struct Candidate {
        var hosts: [String]
        var kind: Int32
    }

    /// Numbers of certificates, at most one of each key type.
    typealias Group = [Int]

    /// For clients without SNI, or with an unknown name.
    let fallback: Group
    private var exact: [String: Group] = [:]
    /// By the part after the asterisk, such as `.example.com`.
    private var wildcards: [String: Group] = [:]

    init(_ candidates: [Candidate]) {
        for (number, candidate) in candidates.enumerated() {
            for host in candidate.hosts {
                if host.hasPrefix("*.") {
                    Self.add(number, to: &wildcards, String(host.dropFirst()), candidates)
                } else if !host.contains("*") {
                    Self.add(number, to: &exact, host, candidates)
                }
            }
        }
        fallback = Self.fallback(candidates)
    }

    /// Whether any name selects something else than the fallback.
    var hasAlternatives: Bool {
        exact.values.contains { $0 != fallback } || wildcards.values.contains { $0 != fallback }
    }

    /// The certificates for a name, compared case-insensitively.
    func group(for name: UnsafeBufferPointer<UInt8>?) -> Group {
        guard let name = unsafe name, let host = unsafe CertificateNames.host(name) else { return fallback }
        if let group = exact[host] { return group }
        guard let dot = host.utf8.firstIndex(of: UInt8(ascii: ".")), dot != host.startIndex else { return fallback }
        return wildcards[String(host[dot...])] ?? fallback
    }

    private static func add(
        _ number: Int, to groups: inout [String: Group], _ name: String, _ candidates: [Candidate]
    ) {
        let others = groups[name, default: []]
        guard !others.contains(where: { candidates[$0].kind == candidates[number].kind }) else { return }
        groups[name] = others + [number]
    }

    /// The first certificate, with one of every other key type that has all its names.
    private static func fallback(_ candidates: [Candidate]) -> Group {
        guard let first = candidates.first else { return [] }
        var group = [0]
        let names = Set(first.hosts)
        for (number, candidate) in candidates.enumerated().dropFirst()
        where !names.isEmpty && names.isSubset(of: candidate.hosts) {
            if !group.contains(where: { candidates[$0].kind == candidate.kind }) { group.append(number) }
        }
        return group
    }
}
