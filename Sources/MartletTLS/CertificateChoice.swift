internal import MartletCore

/// Which certificates answer to which name: exact names before wildcards, the first certificate where none is meant.
///
/// A wildcard stands for exactly one label. Of several certificates with one name, the first of each kind of key is
/// used: a client that takes ECDSA gets that one, another the RSA one.
struct CertificateChoice: Sendable {
    /// What is known of one certificate.
    struct Candidate {
        var hosts: [String]
        var kind: Int32
    }

    /// Numbers of certificates, at most one of each kind of key.
    typealias Group = [Int]

    /// For clients that ask for nothing that is there.
    let fallback: Group
    private var exact: [String: Group] = [:]
    /// By what follows the asterisk, such as `.example.com`.
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

    /// Whether it ever matters what the client asks for.
    var hasAlternatives: Bool {
        exact.values.contains { $0 != fallback } || wildcards.values.contains { $0 != fallback }
    }

    /// The certificates for a name; names are compared without regard to case.
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

    /// The first certificate, with one of every other kind of key that has all its names.
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
