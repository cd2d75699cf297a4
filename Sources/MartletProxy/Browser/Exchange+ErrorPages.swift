internal import MartletDecisions
internal import MartletResponder

extension Exchange {
    /// The page for a failure of a navigation; `nil` for any other request.
    func errorPage(for failure: Failure, _ snapshot: Snapshot) -> ErrorPage? {
        guard let language = request.navigation.language, let pages = snapshot.browser?.errors else { return nil }
        return pages.page(failure, language, unsafe String(decoding: record.texts.requestID, as: UTF8.self))
    }
}
