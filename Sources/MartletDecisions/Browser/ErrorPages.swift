package import MartletResponder

/// The pages for errors of navigations.
package struct ErrorPages: Sendable {
    /// The index of the language of a page, by `Accept-Language`.
    package let language: @Sendable (_ acceptLanguage: String?) -> UInt8
    /// The page for a failure; `nil` for one that stays a document.
    package let page: @Sendable (_ failure: Failure, _ language: UInt8, _ requestID: String) -> ErrorPage?
    /// The page for a user who is signed in and may not see what they asked for.
    package let denial: @Sendable (_ failure: Failure, _ request: LocalRequest) async -> LocalResponse

    package init(
        language: @escaping @Sendable (String?) -> UInt8,
        page: @escaping @Sendable (Failure, UInt8, String) -> ErrorPage?,
        denial: @escaping @Sendable (Failure, LocalRequest) async -> LocalResponse
    ) {
        self.language = language
        self.page = page
        self.denial = denial
    }
}
