internal import MartletCore
package import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletRouter

extension AuthenticationRules {
    /// The headers that are credentials on a route.
    package func headerNames(on route: Int) -> [String] {
        guard routes[route].readsRequest else { return [] }
        return plan(of: route).headerSources.flatMap { headerSources[Int($0)].fieldNames }
    }

    /// The fields that no upstream gets unless its route says so, whether or not its providers read them: the headers
    /// of keys of all providers, and proofs of keys.
    package var withheldNames: [String] { ["DPoP"] + headerSources.filter { !$0.isSignature }.flatMap(\.fieldNames) }

    /// Whether a request without a credential that its route accepts has one of the gateway's own in a header that is a
    /// credential elsewhere.
    package func hasForeignKey(
        on route: Int, _ fields: borrowing FieldList, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard routes[route].mode == .optional else { return false }
        for index in 0..<fields.count {
            let field = fields[index]
            if unsafe keyHeaders.mayContain(field) && headerIndex.source(of: field, in: bytes.span, keyHeaders) != nil
                && OwnToken.appears(in: bytes[field.value])
            {
                return true
            }
        }
        return false
    }

    /// The headers that are credentials on any route, and that of the assertion: who has it is believed to be the
    /// gateway by the upstream that it is for.
    package var credentialNames: [String] {
        headerSources.flatMap(\.fieldNames) + (assertion.map { [$0.headerName] } ?? [])
    }

    /// The providers of a route.
    func plan(of route: Int) -> AuthenticationPlan { plans[Int(routes[route].plan)] }
}
