/// RSA moduli of the form that a faulty generator gave them (CVE-2017-15361, "ROCA"), which can be factored.
///
/// Its primes were k · M + 65537ᵃ mod M for a product M of small primes, so that the modulus is a power of 65537 modulo
/// each of them. Another modulus is so by chance once in 2²⁷ keys.
enum RelatedPrimes {
    /// Those of the first 39 primes that divide M and modulo which not every number is a power of 65537.
    private static let primes: [UInt32] = [
        11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157,
    ]

    /// - Parameter modulus: big-endian.
    static func areLikely(in modulus: [UInt8]) -> Bool {
        primes.allSatisfy { prime in
            let remainder = modulus.reduce(UInt32(0)) { ($0 << 8 | UInt32($1)) % prime }
            var power: UInt32 = 1
            for _ in 0..<prime {
                if power == remainder { return true }
                power = power * (65537 % prime) % prime
            }
            return false
        }
    }
}
